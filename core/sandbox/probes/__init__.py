"""Escape attempts as data: each YAML file lists programs that get out of anything but a working sandbox."""
