"""Suites of programs with checked outputs: the shipped one, and the users' own YAML files."""
