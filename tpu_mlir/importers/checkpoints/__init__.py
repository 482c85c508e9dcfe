"""Checkpoints on disk: configuration, weights one tensor at a time, tokenizer; no graph, no torch."""
