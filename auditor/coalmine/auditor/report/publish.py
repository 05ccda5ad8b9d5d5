"""Everything that a finished audit leaves in its folder: ``findings.json``, ``figures/`` and ``report.html``."""

from __future__ import annotations

from pathlib import Path

from coalmine.auditor.report import figures, html, record, style
from coalmine.auditor.report.write import write_bytes, write_text
from coalmine.auditor.result import RoundAudit
from coalmine.protocol.errors import StorageError


def publish(audit: RoundAudit, folder: Path) -> Path:
    """Write all of it; the folder is made where it is missing.

    Returns:
        The path of ``report.html``. ``findings.json`` is written last: a folder that holds it is complete.

    Raises:
        StorageError: no space or no permission.
    """
    pictures = folder / "figures"
    try:
        pictures.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            error.strerror or "cannot be made", where=str(pictures), remedy="choose another folder"
        ) from error
    drawings = {}
    for name, draw in figures.FIGURES.items():
        figure = draw(audit)
        drawings[name] = style.svg(figure)
        write_text(pictures / f"{name}.svg", drawings[name])
        write_bytes(pictures / f"{name}.png", style.png(figure))
    report = html.write(audit, drawings, folder)
    record.write(audit, folder)
    return report
