"""How each `top` op becomes `tpu` ops: the target, the check that it can be reached, the patterns."""
