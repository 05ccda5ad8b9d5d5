"""A product as a folder of CSV files and a manifest: whole or not at all, and readable by its owner only."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from coalmine.clients.data.users import User
from coalmine.deploy.synthesis.order import Kind, Order
from coalmine.deploy.synthesis.produce import Product
from coalmine.protocol.errors import StorageError
from coalmine.server.synthesise.corpus import Synthetic

MANIFEST = "manifest.json"


def write_product(order: Order, product: Product, folder: Path) -> dict[str, Any]:
    """Write a new folder and return its manifest.

    ``train.csv`` and ``holdout.csv`` (user, text, label), ``synthetic.csv`` (text, label), the copycat's ``truth.csv``,
    ``canaries.csv``, and for every reference what it wrote or, without a generator, what it is to learn from.

    Raises:
        StorageError: the folder holds something already, or cannot be written.
    """
    refuse_if_filled(folder)
    manifest = account(order, product)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        try:
            for name, content in _files(order, product).items():
                (draft / name).write_text(content, encoding="utf-8")
            (draft / MANIFEST).write_text(json.dumps(manifest, indent=2, allow_nan=False) + "\n", encoding="utf-8")
            draft.replace(folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    except OSError as error:
        remedy = "choose a folder with space that can be written"
        raise StorageError(error.strerror or "cannot be written", where=str(folder), remedy=remedy) from error
    return manifest


def refuse_if_filled(folder: Path) -> None:
    """Splits of two draws must never lie side by side.

    Raises:
        StorageError: something is there.
    """
    try:
        filled = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    except OSError as error:
        raise StorageError(error.strerror or "cannot be read", where=str(folder), remedy="choose another") from error
    if filled:
        raise StorageError("there is something here already", where=str(folder), remedy="choose a new folder")


def account(order: Order, product: Product) -> dict[str, Any]:
    """How everything came about. It holds the seed, which undoes assignment and noise: as private as the splits."""
    claim = product.claim
    synthetic = product.synthetic
    return {
        "coalmine": version("coalmine"),
        "data": {"source": product.source, "digest": product.digest},
        "assignment": {
            "design": str(order.design),
            "p": order.p,
            "unit": "user",
            "train_users": len(product.train),
            "holdout_users": len(product.holdout),
        },
        "seed": order.seed,
        "generator": None if synthetic is None else synthetic.generator,
        "settings": _settings(order),
        "records": None if synthetic is None else {"written": len(synthetic.texts), "blank": synthetic.blank},
        "copies": len(product.copies) if order.generator is Kind.COPYCAT else None,
        "claim": None if claim is None else {key: _plain(value) for key, value in asdict(claim).items()},
        "randomness": "simulated: assignment, participation and noise follow from the seed",
        "canaries": None
        if product.canaries is None
        else {
            "train": len(product.canaries.train),
            "holdout": len(product.canaries.holdout),
            **asdict(order.canaries),
        },
    }


def _settings(order: Order) -> dict[str, Any]:
    match order.generator:
        case Kind.COPYCAT:
            return {"rate": order.rate, "passage": order.passage, "fresh": str(order.public)}
        case Kind.REWRITE:
            return {"writer": str(order.writer)}
        case Kind.SFT:
            return {**asdict(order.schedule), **asdict(order.asking), "public": str(order.public)}
        case Kind.DP_SFT:
            budget = {key: _plain(value) for key, value in asdict(order.budget).items()}
            return {**budget, **asdict(order.asking), "public": str(order.public)}
        case Kind.NONE:
            return {}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, str) else value


def _files(order: Order, product: Product) -> dict[str, str]:
    files = {"train.csv": _records(product.train), "holdout.csv": _records(product.holdout)}
    if product.synthetic is not None:
        files["synthetic.csv"] = _written(product.synthetic)
    if order.generator is Kind.COPYCAT:
        rows = (
            (copy.position, product.train[copy.user].id, copy.record, copy.start, copy.stop) for copy in product.copies
        )
        files["truth.csv"] = _table(("position", "user", "record", "first_word", "end_word"), rows)
    if product.canaries is not None:
        part = {user.id: number for number, users in enumerate(product.parts, start=1) for user in users}
        files["canaries.csv"] = _table(
            ("user", "text", "member", "reference"),
            (
                (user.id, user.records[0], int(member), part.get(user.id, ""))
                for member, users in ((True, product.canaries.train), (False, product.canaries.holdout))
                for user in users
            ),
        )
    for number, made in enumerate(product.references, start=1):
        files[f"reference-{number}.csv"] = _written(made)
    if order.generator is Kind.NONE and product.canaries is not None:
        inside = {user.id for user in product.canaries.train}
        others = [user for user in product.train if user.id not in inside]
        for number, users in enumerate(product.parts, start=1):
            files[f"train-reference-{number}.csv"] = _records([*others, *users])
    return files


def _records(users: Sequence[User]) -> str:
    return _table(
        ("user", "text", "label"),
        ((user.id, text, label) for user in users for text, label in zip(user.records, user.labels, strict=True)),
    )


def _written(synthetic: Synthetic) -> str:
    return _table(("text", "label"), zip(synthetic.texts, synthetic.labels, strict=True))


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return file.getvalue()
