"""The chips that models are compiled for: machine parameters as data."""
