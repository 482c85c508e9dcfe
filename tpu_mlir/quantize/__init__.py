"""Quantised weights: how checkpoints store them, one canonical form, our own rounding, and int8 calibration."""
