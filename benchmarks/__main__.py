"""`python -m benchmarks [NAME ...]`: measure, print a table, write JSON."""

from __future__ import annotations

import importlib
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import coalmine.deploy  # noqa: F401  (switches telemetry off before anything heavy is imported)

NAMES = (
    "voting",
    "trials",
    "exact",
    "rounds",
    "greedy",
    "encoder",
    "shards",
    "startup",
    "regurgitation",
    "pii",
    "shadow",
    "federation",
    "scale",
)
RESULTS = Path("runs") / "benchmarks.json"


def main(chosen: list[str]) -> None:
    """Run the named benchmarks, all of them by default."""
    unknown = set(chosen) - set(NAMES)
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(sorted(unknown))}; known: {', '.join(NAMES)}")
    results = []
    print(f"{len(os.sched_getaffinity(0))} cores")
    for name in chosen or NAMES:
        for found in importlib.import_module(f"benchmarks.{name}").measure():
            promise = f"   promised: {found.promise}" if found.promise else ""
            print(f"{name:9} {found.name:58} {found.value:10.4g} {found.unit:12}{promise}", flush=True)
            results.append({"benchmark": name, **asdict(found)})
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1))
    print(f"wrote {RESULTS}")


if __name__ == "__main__":
    main(sys.argv[1:])
