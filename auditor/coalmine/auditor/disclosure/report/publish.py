"""Everything that a finished disclosure audit leaves in its folder."""

from __future__ import annotations

from pathlib import Path

from coalmine.auditor.disclosure.audit import Audited
from coalmine.auditor.disclosure.report import figures, page, record
from coalmine.auditor.report import style
from coalmine.auditor.report.write import write_bytes, write_text
from coalmine.protocol.errors import StorageError

WITNESSES = "witnesses.html"


def publish(found: Audited, folder: Path, *, show_text: bool = False) -> Path:
    """Write ``figures/``, ``report.html`` and last ``findings.json``; with ``show_text`` also ``witnesses.html``.

    The page of witnesses can be read by its owner alone, and is not among what is tracked.

    Returns:
        The path of ``report.html``.

    Raises:
        StorageError: no space or no permission.
    """
    pictures = folder / "figures"
    try:
        pictures.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = "choose another folder"
        raise StorageError(error.strerror or "cannot be made", where=str(pictures), remedy=remedy) from error
    drawings = {}
    for name, draw in figures.FIGURES.items():
        figure = draw(found.audit)
        drawings[name] = style.svg(figure)
        write_text(pictures / f"{name}.svg", drawings[name])
        write_bytes(pictures / f"{name}.png", style.png(figure))
    report = write_text(folder / "report.html", page.render(found.audit, drawings))
    if show_text:
        shown = page.render_witnesses(found.audit, found.witnesses)
        write_bytes(folder / WITNESSES, shown.encode(), mode=0o600)
    record.write(found.audit, folder)
    return report
