"""Figures on disk, as SVG and PNG."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from coalmine.auditor.report import style
from coalmine.auditor.report.write import write_bytes, write_text
from coalmine.protocol.errors import StorageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_figure(figure: Figure, name: str, folder: Path) -> str:
    """Write ``figures/<name>.svg`` and ``.png`` into a folder, which is made where it is missing.

    Returns:
        The SVG document.

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
    drawing = style.svg(figure)
    write_text(pictures / f"{name}.svg", drawing)
    write_bytes(pictures / f"{name}.png", style.png(figure))
    return drawing
