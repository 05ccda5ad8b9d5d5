"""From the sections of a study to the parts that do the work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coalmine.deploy.study import Study
from coalmine.protocol.errors import StudyError
from coalmine.protocol.ports import Generator
from coalmine.protocol.randomness import Randomness, Simulated

if TYPE_CHECKING:
    from coalmine.clients.data.load import DataSource
    from coalmine.clients.population.conditions import Conditions


def data_source(study: Study) -> DataSource:
    """Where the study's users come from."""
    from coalmine.clients.data.files import FileSource
    from coalmine.clients.data.huggingface import HuggingFaceSource
    from coalmine.clients.data.personas import PersonasSource
    from coalmine.clients.data.rows import Columns
    from coalmine.clients.data.sotu import SotuSource

    data = study.data
    columns = Columns(data.user_column, data.text_column, data.label_column)
    match data.source:
        case "sotu":
            return SotuSource()
        case "personas":
            return PersonasSource(users=data.users, records_per_user=data.records_per_user, seed=study.seed)
        case "file":
            assert data.path is not None
            return FileSource(data.path, columns, data.on_bad_record)
        case "huggingface":
            return HuggingFaceSource(
                str(data.path), split=data.split, columns=columns, on_bad_record=data.on_bad_record
            )


def generator(study: Study, cache: Path) -> Generator:
    """The study's generator behind its cache of texts."""
    from coalmine.server.generate.cache import CachedGenerator

    section = study.generator
    match section.kind:
        case "rules":
            from coalmine.server.generate.rules import RulesGenerator

            return CachedGenerator(RulesGenerator(section.topic), cache)
        case "smollm2":
            from coalmine.server.generate.smollm2 import SmolLM2Generator

            return CachedGenerator(SmolLM2Generator(cache), cache)
        case "openai":
            from coalmine.server.generate.openai import OpenAIGenerator

            if section.base_url is None or section.model is None:
                raise StudyError("a server needs base_url and model", where="generator")
            return CachedGenerator(
                OpenAIGenerator(
                    section.base_url,
                    section.model,
                    api_key_env=section.api_key_env,
                    concurrency=section.concurrency,
                    timeout=section.timeout,
                ),
                cache,
            )


def randomness(study: Study) -> Randomness:
    """Simulated from the seed, or protected by a key file."""
    if study.randomness.kind == "simulated":
        return Simulated(study.seed)
    from coalmine.clients.key import protected

    if study.randomness.key_file is None:
        raise StudyError("protected randomness needs a key_file", where="randomness.key_file")
    return protected(study.randomness.key_file)


def conditions(study: Study, users: Sequence[str]) -> Conditions:
    """How the study's voting users come and go.

    Raises:
        DataError: a malformed trace (its line and field), or one that names none of the users.
    """
    from coalmine.clients.population.settings import conditions as read
    from coalmine.clients.population.trace import Trace

    found = read(study.population.settings())
    if isinstance(found.availability, Trace):
        found.availability.check(users)
    return found


def comings_and_goings(study: Study) -> dict[str, str]:
    """What a reader must know of clients and noise, where they are not the plain ones."""
    told = {}
    section, sharing = study.population, study.sharing()
    if not section.conditions().ideal or section.availability == "trace":
        told["clients"] = (
            f"availability {section.availability}, dropout {section.dropout:g},"
            f" deadline {'none' if section.deadline is None else f'{section.deadline:g}'}; what is exact, counted or"
            " replayed for a round is so given who would answer in it"
        )
    if sharing is not None and sharing.maximum is not None:
        told["noise"] = (
            f"distributed in shares for {sharing.minimum} survivors, topped up to {sharing.maximum} shares whoever took"
            f" part: {sharing.carried(study.privacy.mechanism()).noise_std:.4g} a candidate, which the audit models;"
            f" the claim counts on {study.privacy.mechanism().noise_std:.4g}"
        )
    elif sharing is not None:
        told["noise"] = (
            f"distributed in shares for {sharing.minimum} survivors; fewer abort the round. The audit models the least"
            " noise that a release can carry, and an attacker who sees releases only"
        )
    return told
