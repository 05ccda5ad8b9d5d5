"""What the detector of personal details finds in labelled text, and how fast. Needs the folder `shared`.

A label is found where a detail of its kind has exactly its span; by `overlap` where any detail touches it. A detail
is right where some label of its kind has exactly its span; by `overlap` where it touches any label.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.measurement import Measurement
from coalmine.auditor.disclosure import pii_detector
from coalmine.auditor.disclosure.pii_detector import Detail, PresidioDetector

KINDS = {"GPE": "LOCATION", "STREET_ADDRESS": "LOCATION", "DOMAIN_NAME": "URL"}
"""Names of the labels that presidio calls otherwise."""
NOT_SOUGHT = {"AGE", "TITLE", "ZIP_CODE"}


def measure() -> list[Measurement]:
    """Per kind of label recall, per kind of detail precision, with the model and with patterns alone."""
    place = Path(os.environ.get("COALMINE_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    file = place / "data" / "pii_spans.jsonl"
    if not file.is_file():
        print("pii: skipped, needs data/pii_spans.jsonl of the folder `shared` (COALMINE_SHARED)")
        return []
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    detector = PresidioDetector()
    results = _judged("model", detector, rows)
    package, pii_detector.MODEL_PACKAGE = pii_detector.MODEL_PACKAGE, "none"
    try:
        patterns = PresidioDetector()
    finally:
        pii_detector.MODEL_PACKAGE = package
    return results + _judged("patterns", patterns, rows)


def _judged(name: str, detector: PresidioDetector, rows: list[dict[str, object]]) -> list[Measurement]:
    texts = [str(row["text"]) for row in rows]
    detector.detect(texts[:64])
    started = time.perf_counter()
    found = detector.detect(texts)
    took = time.perf_counter() - started
    labels = [
        [
            (span["type"], Detail(KINDS.get(span["type"], span["type"]), span["start"], span["end"]))
            for span in row["spans"]
        ]
        for row in rows
    ]  # type: ignore[attr-defined]
    results = [Measurement(f"{name}: time", 1000 * took / len(texts), "ms/text")]
    ways: list[tuple[str, Callable[[Detail, Detail], bool]]] = [("exact", Detail.__eq__), ("overlap", _touches)]
    sought, details = Counter[str](), Counter[str]()
    hits = {way: Counter[str]() for way, _ in ways}
    right = {way: Counter[str]() for way, _ in ways}
    for of_text, in_text in zip(labels, found, strict=True):
        sought.update(kind for kind, _ in of_text)
        details.update(detail.kind for detail in in_text)
        for way, same in ways:
            hits[way].update(kind for kind, label in of_text if any(same(label, detail) for detail in in_text))
            right[way].update(detail.kind for detail in in_text if any(same(label, detail) for _, label in of_text))
    for kind, count in sought.most_common():
        note = " (not sought)" if kind in NOT_SOUGHT else ""
        results += [
            Measurement(f"{name}: recall of {kind}, {count} labels, {way}{note}", hits[way][kind] / count, "")
            for way, _ in ways
        ]
    for kind, count in details.most_common():
        results += [
            Measurement(f"{name}: precision of {kind}, {count} details, {way}", right[way][kind] / count, "")
            for way, _ in ways
        ]
    return results


def _touches(label: Detail, detail: Detail) -> bool:
    return label.start < detail.end and detail.start < label.end
