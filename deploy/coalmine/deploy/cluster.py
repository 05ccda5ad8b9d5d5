"""A Ray cluster of one machine for the length of a study; with ``simulation`` and ``embedding`` the door to Ray."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coalmine.protocol.errors import StorageError

_SHARED_MEMORY = Path("/dev/shm")
ONE_THREAD = {"env_vars": dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")}
"""Workers are as many as cores, so each gets one thread."""


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def cluster(workers: int, object_bytes: int) -> Iterator[None]:
    """Start Ray on the loopback address and stop it at the end.

    Shard sums are noise-free, so they must never reach a disk: spilling is off and the object store must fit into
    shared memory.

    Args:
        workers: worker processes that run at once. object_bytes: size of the object store.

    Raises:
        StorageError: not enough shared memory.
    """
    import ray

    if _SHARED_MEMORY.is_dir() and (free := shutil.disk_usage(_SHARED_MEMORY).free) < object_bytes:
        raise StorageError(
            f"shared memory has {free >> 20} MiB free, this study needs {object_bytes >> 20} MiB",
            where=str(_SHARED_MEMORY),
            remedy="enlarge it (containers: --shm-size) or make the study smaller; disk is no substitute, since what is"
            " kept there is private",
        )
    with _no_api_server():
        ray.init(
            num_cpus=workers,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=object_bytes,
            _node_ip_address="127.0.0.1",
            _system_config={"automatic_object_spilling_enabled": False, "worker_niceness": 0},
        )
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _no_api_server() -> Iterator[None]:
    """Ray's API server asks cloud metadata addresses where it runs, even with usage statistics off and no dashboard,
    and has no switch for it (Ray 2.60). Nothing here needs that server, so it is not started."""
    from ray._private import services

    started = services.start_api_server
    services.start_api_server = lambda *_, **__: (None, None)
    try:
        yield
    finally:
        services.start_api_server = started
