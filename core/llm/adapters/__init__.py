"""Transports behind one protocol; each imports its library when it is first used."""
