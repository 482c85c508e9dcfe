"""TPU-MLIR for LLMs: Hugging Face models to an emulated chip."""
