"""Where what can be computed again is kept."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return $COMPLAB_CACHE, or ~/.cache/complab."""
    return Path(os.environ.get("COMPLAB_CACHE") or Path.home() / ".cache" / "complab")
