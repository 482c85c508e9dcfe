"""Is a lowered model still the model: the same tensors at two levels, compared one by one."""
