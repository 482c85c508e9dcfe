"""Scores over records: S_t, ES_t, AS, fast_p and geometric means, as pure functions."""
