"""Independent computations spread over the cores of the cluster, one thread each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ray
from ray.exceptions import OutOfMemoryError, RayActorError, RayTaskError, WorkerCrashedError

from coalmine.protocol.errors import CoalmineError, ContributionError


def share(value: Any) -> Any:
    """Put a value where every task finds it; to be given to ``spread`` among a job's arguments."""
    return ray.put(value)


def spread(function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
    """Call ``function`` with every job's arguments; yields (index of the job, result) as they finish.

    A worker that dies is replaced and its job repeated, three times at most.

    Raises:
        CoalmineError: what a job raised.
    """
    task = ray.remote(function).options(num_cpus=1, max_retries=3)
    waiting = {task.remote(*job): index for index, job in enumerate(jobs)}
    while waiting:
        (done,), _ = ray.wait(list(waiting), num_returns=1)
        index = waiting.pop(done)
        yield index, result(done)


def result(reference: Any) -> Any:
    """What a worker answered.

    Raises:
        CoalmineError: what it raised; ContributionError: it died and could not be replaced.
    """
    try:
        return ray.get(reference)
    except RayTaskError as error:
        if isinstance(error.cause, CoalmineError):
            raise error.cause from None
        raise
    except (RayActorError, OutOfMemoryError, WorkerCrashedError):
        raise ContributionError(
            "a worker process died and could not be replaced",
            remedy="look for lack of memory, then run it again; what was finished is kept",
        ) from None
