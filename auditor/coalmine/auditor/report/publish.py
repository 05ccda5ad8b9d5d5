"""Everything that a finished audit leaves in its folder: ``findings.json``, ``figures/`` and ``report.html``."""

from __future__ import annotations

from pathlib import Path

from coalmine.auditor.report import figures, html, record
from coalmine.auditor.report.pictures import write_figure
from coalmine.auditor.result import RoundAudit


def publish(audit: RoundAudit, folder: Path) -> Path:
    """Write all of it; the folder is made where it is missing.

    Returns:
        The path of ``report.html``. ``findings.json`` is written last: a folder that holds it is complete.

    Raises:
        StorageError: no space or no permission.
    """
    drawings = {name: write_figure(draw(audit), name, folder) for name, draw in figures.FIGURES.items()}
    report = html.write(audit, drawings, folder)
    record.write(audit, folder)
    return report
