"""``report.html``, which may be published, and ``witnesses.html``, which shows private text and may not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coalmine.auditor.disclosure.power import POWER
from coalmine.auditor.disclosure.report.rows import rows
from coalmine.auditor.disclosure.report.table import headline, qualifiers
from coalmine.auditor.disclosure.result import DisclosureAudit, DisclosureVerdict
from coalmine.auditor.disclosure.witness import Witness
from coalmine.auditor.report.page import page, picture
from coalmine.auditor.report.wording import percent

_LABELS = {
    "counts": "Share of matches in train, per class, against chance",
    "roc": "True-positive rate against false-positive rate of the scores of each class",
}


def render(audit: DisclosureAudit, drawings: Mapping[str, str]) -> str:
    """The publishable page.

    Args:
        drawings: SVG documents by the names in ``figures.FIGURES``.
    """
    return _page(
        "disclosure.html.j2",
        {
            "audit": audit,
            "headline": headline(audit),
            "qualifiers": qualifiers(audit),
            "rows": rows(audit),
            "level": percent(1 - audit.alpha),
            "power": percent(POWER),
            "kinds": {verdict.value: verdict.name.lower() for verdict in DisclosureVerdict},
            "figures": {name: picture(svg, name, _LABELS[name]) for name, svg in drawings.items()},
        },
    )


def render_witnesses(audit: DisclosureAudit, seen: Sequence[tuple[str, Sequence[Witness]]]) -> str:
    """Private and synthetic text side by side."""
    return _page("witnesses.html.j2", {"audit": audit, "headline": headline(audit), "groups": seen})


def _page(template: str, context: dict[str, Any]) -> str:
    return page(template, context, package="coalmine.auditor.disclosure", styles=("report.css", "disclosure.css"))
