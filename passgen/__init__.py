"""PassNet: LLM-authored torch.fx graph passes, scored by ES_t."""
