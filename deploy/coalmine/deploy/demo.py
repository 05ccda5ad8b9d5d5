"""The demo's study: small enough for minutes on two cores, real enough to say something."""

from __future__ import annotations

from typing import Any


def demo_study() -> dict[str, Any]:
    """A fresh copy of the demo's study, to be validated like any other."""
    return {
        "study": "demo",
        "seed": 2026,
        "data": {"source": "sotu", "min_records": 32, "auxiliary": 50, "calibration": 50, "test": 100},
        "generator": {"kind": "rules", "topic": "general"},
        "bank": {"size": 2048},
        "privacy": {"max_records": 32},
        "audit": {"canary_records": 32, "probes": 32, "pool": 64, "replays": 32},
    }
