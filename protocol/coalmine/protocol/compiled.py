"""Kernels in machine code: the few loops that no array library has."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numba


def compiled(*, fastmath: Collection[str] = ()) -> Callable[[Callable[..., Any]], Any]:
    """Compile a kernel at its first call. It runs without the interpreter's lock.

    The machine code is kept where NUMBA_CACHE_DIR says, if it says anything and can be written. Numba's own choice,
    beside the source, would make a read-only installation fail. A kernel may call only kernels of its own file: numba
    notices a change by the time stamp of the caller's file alone.

    Args:
        fastmath: what of LLVM's liberties with floating point the kernel allows; none by default.
    """
    allowed = set(fastmath) or False
    decorate: Callable[[Callable[..., Any]], Any] = numba.njit(nogil=True, cache=_can_be_kept(), fastmath=allowed)
    return decorate


def _can_be_kept() -> bool:
    named = vars(numba.config)["CACHE_DIR"]
    if not named:
        return False
    folder = Path(named)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:  # then kernels are compiled anew in every process: slower, and nothing else
        return False
    return os.access(folder, os.W_OK)
