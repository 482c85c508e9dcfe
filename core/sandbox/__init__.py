"""Runs code that nobody trusts; states its guarantees and proves them by trying."""
