"""The shared ground floor of complab: it imports none of the four systems."""
