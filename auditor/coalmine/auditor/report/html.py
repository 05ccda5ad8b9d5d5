"""``report.html``, the page of an audited round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from coalmine.auditor.report.page import page, picture
from coalmine.auditor.report.summary import elsewhere_names, featured, most_counted, numerical_error, rows
from coalmine.auditor.report.table import elsewhere_heading, exactly, other
from coalmine.auditor.report.wording import (
    ELSEWHERE,
    LARGEST,
    ROUNDED,
    answer,
    attacker,
    percent,
    promise,
    qualifiers,
    randomness,
    releases,
)
from coalmine.auditor.report.write import write_text
from coalmine.auditor.result import PoolAccount, RoundAudit
from coalmine.protocol.finding import Verdict

_LABELS = {
    "epsilons": "Exact and certified epsilon of each attack against the claim",
    "waterfall": "Epsilon left after each step from the claim to what trials certify",
    "trade-off": "True-positive rate against false-positive rate, with the region that the claim allows",
    "probe-votes": "Votes of the canary on audited candidates beside other users and noise",
}


def render(audit: RoundAudit, drawings: Mapping[str, str]) -> str:
    """The page.

    Args:
        drawings: SVG documents by the names in ``figures.FIGURES``.
    """
    filters: dict[str, Callable[..., str]] = {"exactly": exactly, "other": partial(other, names=elsewhere_names(audit))}
    return page("report.html.j2", _context(audit, drawings), filters=filters)


def write(audit: RoundAudit, drawings: Mapping[str, str], folder: Path) -> Path:
    """Write ``report.html`` into an existing folder.

    Raises:
        StorageError: the folder cannot be written.
    """
    return write_text(folder / "report.html", render(audit, drawings))


def _context(audit: RoundAudit, drawings: Mapping[str, str]) -> dict[str, Any]:
    found = rows(audit)
    canaries = [canary for attack in audit.attacks for canary in attack.canaries]
    names = elsewhere_names(audit)
    pools = _pools(audit)
    return {
        "audit": audit,
        "claim": audit.claim,
        "mechanism": audit.mechanism,
        "rows": found,
        "featured": featured(audit),
        "counted": most_counted(found),
        "canaries": canaries,
        "steps": featured(audit)[0].strongest.waterfall.steps if found else (),
        "replays": [canary for canary in canaries if canary.replay is not None],
        "pools": pools,
        "sourced": [pool for _, pool in pools if pool.min_cosine is not None],
        "answer": answer(audit),
        "level": percent(1 - audit.alpha),
        "qualifiers": qualifiers(audit.claim),
        "attacker": attacker(audit.claim),
        "promise": promise(audit.claim),
        "releases": releases(audit.claim),
        "randomness": randomness(audit),
        "numerical_error": numerical_error(audit),
        "largest": LARGEST,
        "rounded": ROUNDED,
        "contradicted": Verdict.CONTRADICTED,
        "elsewhere": elsewhere_heading(names),
        "elsewhere_note": " ".join(ELSEWHERE[name] for name in names if name in ELSEWHERE),
        "assurances": {
            "monte_carlo": _shared(row.monte_carlo.assurance for row in found),
            "variance_reduced": _shared(row.variance_reduced.assurance for row in found),
        },
        "methods": sorted({evidence.method for canary in canaries for evidence in canary.evidence}),
        "figures": {name: picture(svg, name, _LABELS[name]) for name, svg in drawings.items()},
    }


def _shared(words: Any) -> str:
    return ", ".join(sorted({str(word) for word in words}))


def _pools(audit: RoundAudit) -> list[tuple[str, PoolAccount]]:
    """Every account once, with the attacks that used it."""
    used: dict[str, tuple[PoolAccount, list[str]]] = {"": (audit.bank, [])}
    for attack in audit.attacks:
        for pool in attack.pools:
            used.setdefault(repr(pool), (pool, []))[1].append(attack.name)
    return [(", ".join(attacks), pool) for pool, attacks in used.values()]
