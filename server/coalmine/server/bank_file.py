"""Banks on disk: Parquet with columns text and label, the encoder's id in the metadata."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from coalmine.protocol.bank import Bank
from coalmine.protocol.errors import BankError, StorageError

_ENCODER = b"coalmine.encoder"


def write_bank(bank: Bank, path: Path) -> None:
    """Write a bank, whole or not at all.

    Raises:
        StorageError: the file cannot be written.
    """
    table = pa.table({"text": pa.array(bank.texts, pa.string()), "label": pa.array(bank.labels, pa.string())})
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            pq.write_table(table.replace_schema_metadata({_ENCODER: bank.encoder_id.encode()}), part)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"the bank cannot be written: {error.strerror or error}", where=str(path)) from None


def read_bank(path: Path) -> Bank:
    """Read a bank.

    Raises:
        BankError: missing, not Parquet, without its columns or its encoder, or with blank or duplicated texts.
    """
    try:
        table = pq.read_table(path)
        table.validate(full=True)  # texts are UTF-8
    except FileNotFoundError:
        raise BankError("there is no such file", where=str(path), remedy="`coalmine bank build` writes one") from None
    except (OSError, pa.ArrowInvalid) as error:
        raise BankError(f"cannot be read as Parquet: {error}", where=str(path)) from None
    encoder_id = (table.schema.metadata or {}).get(_ENCODER)
    if not {"text", "label"} <= set(table.column_names) or encoder_id is None:
        raise BankError(
            f"not a bank: columns {table.column_names}",
            where=str(path),
            remedy="needs columns text and label and the encoder's id, as `coalmine bank build` writes them",
        )
    texts, labels = table.column("text").to_pylist(), table.column("label").to_pylist()
    if not all(isinstance(text, str) for text in texts) or not all(isinstance(label, str | None) for label in labels):
        raise BankError("a candidate or its label is not text", where=str(path), remedy="every candidate needs a text")
    try:
        return Bank(
            tuple(text or "" for text in texts),
            tuple(label or "" for label in labels),
            encoder_id.decode(errors="replace"),
        )
    except BankError as error:
        raise BankError(
            error.what, where=f"{path}, {error.where}" if error.where else str(path), remedy=error.remedy
        ) from None
