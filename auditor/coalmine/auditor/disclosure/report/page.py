"""``report.html``, which may be published, and ``witnesses.html``, which shows private text and may not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from coalmine.auditor.disclosure.power import POWER
from coalmine.auditor.disclosure.report.rows import rows
from coalmine.auditor.disclosure.report.table import headline, qualifiers
from coalmine.auditor.disclosure.result import DisclosureAudit, DisclosureVerdict
from coalmine.auditor.disclosure.witness import Witness
from coalmine.auditor.report.style import inline
from coalmine.auditor.report.wording import brief, down, fixed, percent

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
            "figures": {name: Markup(inline(svg, name, _LABELS[name])) for name, svg in drawings.items()},
        },
    )


def render_witnesses(audit: DisclosureAudit, seen: Sequence[tuple[str, Sequence[Witness]]]) -> str:
    """Private and synthetic text side by side."""
    return _page("witnesses.html.j2", {"audit": audit, "headline": headline(audit), "groups": seen})


def _page(template: str, context: dict[str, Any]) -> str:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    look = PackageLoader("coalmine.auditor", "report")
    own = PackageLoader("coalmine.auditor.disclosure", "report")
    environment = Environment(
        loader=ChoiceLoader([own, look]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"brief": brief, "down": down, "fixed": fixed, "percent": percent}
    css = look.get_source(environment, "report.css")[0] + own.get_source(environment, "disclosure.css")[0]
    return environment.get_template(template).render(context | {"css": Markup(css)})
