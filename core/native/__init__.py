"""Builds and caches native code for all systems, and links it under different layouts."""
