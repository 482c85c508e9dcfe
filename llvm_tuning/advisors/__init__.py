"""Who proposes knob settings: rules, and language models."""
