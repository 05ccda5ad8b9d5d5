"""`coalmine audit canary-echo`: the baseline with inserted canaries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coalmine.deploy.commands.output import AsJson, answer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PURPOSE = "echo"


def canary_echo(
    canaries: Annotated[Path, typer.Option(help="All canaries: columns text and member (1: put in, 0: held out).")],
    synthetic: Annotated[Path, typer.Option(help="The audited output, with a column of texts.")],
    reference: Annotated[
        list[Path], typer.Option(help="Output of a reference run with a part of the canaries; repeat, usually 4 times.")
    ],
    text: Annotated[str, typer.Option(help="Column of texts.")] = "text",
    n: Annotated[int, typer.Option(help="Words of an n-gram.", min=1, max=8)] = 2,
    smoothing: Annotated[float, typer.Option(help="Added to every count.")] = 1.0,
    normalisation: Annotated[str, typer.Option(help="probability or log-probability.")] = "probability",
    assignment: Annotated[
        str, typer.Option(help="random: which canaries were put in was drawn; or unknown.")
    ] = "random",
    seed: Annotated[int, typer.Option(help="Of the permutation test, where one is needed.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Canary's Echo (Meeus et al. 2025): do n-grams of the synthetic text tell which canaries were put in?

    The p-value (formal where canaries were drawn at random) is for the hypothesis that the output depends on none of
    them. Area and rates describe this attack only; a blind attack proves no privacy.
    """
    from functools import partial

    from coalmine.auditor.disclosure.echo import Normalisation, echo
    from coalmine.protocol.errors import StudyError, nearest
    from coalmine.protocol.randomness import Purpose, stream

    if normalisation not in tuple(Normalisation):
        raise StudyError(
            f"unknown value {normalisation!r}", where="--normalisation", remedy=nearest(normalisation, Normalisation)
        )
    if assignment not in ("random", "unknown"):
        raise StudyError(
            f"unknown value {assignment!r}", where="--assignment", remedy=nearest(assignment, ("random", "unknown"))
        )
    texts, member = _canaries(canaries, text)
    found = echo(
        texts,
        member,
        partial(_texts, synthetic, text),
        [partial(_texts, path, text) for path in reference],
        stream(seed, Purpose.CANARY, user=_PURPOSE),
        n=n,
        smoothing=smoothing,
        normalisation=Normalisation(normalisation),
        randomised=assignment == "random",
    )
    curve = found.roc
    answer(
        {
            "method": "canary-echo",
            "members": found.members,
            "non_members": found.non_members,
            "n": found.n,
            "references": found.references,
            "normalisation": str(found.normalisation),
            "auc": None if curve is None else curve.auc,
            "p_value": None if curve is None else curve.p_value,
            "p_value_method": None if curve is None else curve.method,
            "null": "the output depends on none of the canaries",
            "assurance": str(found.assurance),
            "tpr": {
                f"at fpr {rate.fpr:g}": {"tpr": rate.tpr, "lower": rate.lower, "upper": rate.upper}
                for rate in found.low
            },
            "tpr_assurance": "heuristic",
        },
        as_json,
    )


def _canaries(path: Path, text: str) -> tuple[list[str], NDArray[np.bool_]]:
    import numpy as np

    from coalmine.clients.data.texts import read_columns
    from coalmine.protocol.errors import DataError

    texts, member = [], []
    for number, (canary, inside) in enumerate(read_columns(path, (text, "member")), start=1):
        if inside not in ("0", "1"):
            raise DataError("member is neither 0 nor 1", where=f"{path}, canary {number}", remedy="1: put in")
        texts.append(canary)
        member.append(inside == "1")
    return texts, np.array(member, bool)


def _texts(path: Path, column: str) -> Iterator[str]:
    from coalmine.clients.data.texts import read_columns

    return (text for (text,) in read_columns(path, (column,)))
