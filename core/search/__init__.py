"""Describe, propose, materialize, judge, keep or fall back: the loop that all four systems share."""
