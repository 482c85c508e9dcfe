"""Passes, one a file: frozen dataclasses that take a module from one state to the next."""
