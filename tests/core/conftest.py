"""Property tests judge by examples, never by the speed of a busy machine."""

from hypothesis import settings

settings.register_profile("complab", deadline=None)
settings.load_profile("complab")
