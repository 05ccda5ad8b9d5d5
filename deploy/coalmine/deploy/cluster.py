"""A Ray cluster of one machine for the length of a study; with ``simulation`` and ``embedding`` the door to Ray."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coalmine.protocol.errors import ContributionError, StorageError

_SHARED_MEMORY = Path("/dev/shm")
_STARTS = 3
_SESSION_BYTES = 64 << 20


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
        StorageError: not enough shared memory, or no space for temporary files. ContributionError: Ray did not start.
    """
    import ray

    if _SHARED_MEMORY.is_dir() and (free := shutil.disk_usage(_SHARED_MEMORY).free) < object_bytes:
        raise StorageError(
            f"shared memory has {free >> 20} MiB free, this study needs {object_bytes >> 20} MiB",
            where=str(_SHARED_MEMORY),
            remedy="enlarge it (containers: --shm-size) or make the study smaller; disk is no substitute, since what is"
            " kept there is private",
        )
    own = Path(os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp")
    if own.is_dir() and (free := shutil.disk_usage(own).free) < _SESSION_BYTES:
        raise StorageError(
            f"Ray's folder for sockets and logs has {free >> 20} MiB free, it needs {_SESSION_BYTES >> 20} MiB",
            where=str(own),
            remedy="free space there, or name another folder in TMPDIR",
        )
    with _no_api_server():
        _start(workers, object_bytes)
    try:
        yield
    finally:
        ray.shutdown()


def _start(workers: int, object_bytes: int) -> None:
    """Ray gives its daemons 30 seconds, which a busy machine may need more than once."""
    import ray

    for attempt in range(1, _STARTS + 1):
        try:
            ray.init(
                num_cpus=workers,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=object_bytes,
                _node_ip_address="127.0.0.1",
                _system_config={"automatic_object_spilling_enabled": False, "worker_niceness": 0},
            )
            return
        except Exception as error:  # Ray raises nothing narrower when a daemon is late
            ray.shutdown()
            if attempt == _STARTS:
                raise ContributionError(
                    f"Ray did not start in {_STARTS} attempts: {error}",
                    remedy="look for a lack of memory, or wait until the machine is less busy",
                ) from error


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
