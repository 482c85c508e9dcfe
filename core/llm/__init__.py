"""One LLM client: messages, structured answers, option scoring, budgets, record and replay."""
