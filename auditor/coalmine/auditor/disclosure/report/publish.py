"""Everything that a finished disclosure audit leaves in its folder."""

from __future__ import annotations

from pathlib import Path

from coalmine.auditor.disclosure.audit import Audited
from coalmine.auditor.disclosure.report import figures, page, record
from coalmine.auditor.report.pictures import write_figure
from coalmine.auditor.report.write import write_bytes, write_text

WITNESSES = "witnesses.html"


def publish(found: Audited, folder: Path, *, show_text: bool = False) -> Path:
    """Write ``figures/``, ``report.html`` and last ``findings.json``; with ``show_text`` also ``witnesses.html``.

    The page of witnesses can be read by its owner alone, and is not among what is tracked.

    Returns:
        The path of ``report.html``.

    Raises:
        StorageError: no space or no permission.
    """
    drawings = {name: write_figure(draw(found.audit), name, folder) for name, draw in figures.FIGURES.items()}
    report = write_text(folder / "report.html", page.render(found.audit, drawings))
    if show_text:
        shown = page.render_witnesses(found.audit, found.witnesses)
        write_bytes(folder / WITNESSES, shown.encode(), mode=0o600)
    else:  # private text that an earlier audit left here would travel with this one's report
        (folder / WITNESSES).unlink(missing_ok=True)
    record.write(found.audit, folder)
    return report
