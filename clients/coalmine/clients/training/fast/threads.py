"""How many threads training takes."""

from __future__ import annotations

import functools

import torch
from threadpoolctl import threadpool_limits


@functools.cache
def on_one_thread() -> None:
    """One, from here on in this process, by torch and by NumPy's matrix library.

    The numbers then do not depend on the machine's cores; small products are faster, most of all beside other work; and
    where there are many models, workers are as many as cores.
    """
    torch.set_num_threads(1)
    threadpool_limits(1)
