"""Where caches live."""

from __future__ import annotations

import os
from pathlib import Path


def default_cache_folder() -> Path:
    """The environment variable COALMINE_CACHE, else the platform's cache folder of this user."""
    chosen = os.environ.get("COALMINE_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return platformdirs.user_cache_path("coalmine", appauthor=False)
