"""Is B faster than A, by how much, how sure are we: paired timing and its statistics."""
