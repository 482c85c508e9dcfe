"""Launches, the command line and reports: the floor that stands on all systems."""
