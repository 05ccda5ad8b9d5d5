"""Pages: one file that a colleague can be sent. No script, no font, no image and no style from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from coalmine.auditor.report.style import inline
from coalmine.auditor.report.wording import brief, down, fixed, percent

_HERE = "coalmine.auditor"
_FILTERS: Mapping[str, Callable[..., str]] = {"brief": brief, "down": down, "fixed": fixed, "percent": percent}


def page(
    template: str,
    context: Mapping[str, Any],
    *,
    package: str = _HERE,
    styles: Sequence[str] = ("report.css",),
    filters: Mapping[str, Callable[..., str]] | None = None,
) -> str:
    """Fill a template; what it names and nobody gave is an error, and every value is escaped.

    Args:
        template: a file in the folder ``report`` of ``package``, or of this one.
        context: what the template names, except ``css``.
        styles: style sheets in the same folders; together they are ``css``.
        filters: beside those that write numbers.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    loader = ChoiceLoader([PackageLoader(name, "report") for name in dict.fromkeys((package, _HERE))])
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {**_FILTERS, **(filters or {})}
    css = "".join(loader.get_source(environment, name)[0] for name in styles)
    return environment.get_template(template).render({**context, "css": Markup(css)})


def picture(drawing: str, key: str, label: str) -> Markup:
    """An SVG document for a page: ``key`` is a prefix that no other figure there uses, ``label`` is read out."""
    return Markup(inline(drawing, key, str(escape(label))))
