"""Advisors that need no compiler knowledge, and the bases of those that do."""
