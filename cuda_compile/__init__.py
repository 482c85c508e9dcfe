"""AgentCompile: validated CUDA candidates from advisory metadata."""
