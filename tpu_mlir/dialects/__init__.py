"""The two dialects: `top` says what a model computes, `tpu` says how a chip computes it."""
