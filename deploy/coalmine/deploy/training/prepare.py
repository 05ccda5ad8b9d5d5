"""Everything that a mistake in a training study can stop, before anything is trained."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalmine.auditor.report.write import write_bytes
from coalmine.clients.population.conditions import Conditions
from coalmine.clients.population.trace import Trace
from coalmine.clients.training.models import ModelSpec
from coalmine.clients.training.order import coming, model, parts, source
from coalmine.clients.training.partitions import Parts
from coalmine.clients.training.source import Samples, samples
from coalmine.deploy.manifest import seed_digest, versions
from coalmine.deploy.study import Study
from coalmine.deploy.study_training import TrainingSection
from coalmine.protocol.dpsgd.schedule import check_drop
from coalmine.protocol.dpsgd.terms import Terms, terms
from coalmine.protocol.errors import StorageError, StudyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHECKPOINT, START, MODEL, TRAINED = "checkpoint.npz", "start.npz", "model.npz", "findings.json"
AUDITED, SHADOWS = "membership.json", "shadows"
_MANIFEST = "manifest.json"
OF_TRAINING = (CHECKPOINT, START, MODEL, TRAINED, _MANIFEST)
OF_AUDITS = (AUDITED, "report.html", "figures")
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Prepared:
    """A training study whose parts fit.

    Attributes:
        settings: what the apps read. parts: rows of each client. conditions: how clients come and go.
        largest_drop: of the filter, from public numbers. notices: what a person should know before it begins.
    """

    section: TrainingSection
    settings: dict[str, Any]
    agreed: Terms
    data: Samples
    spec: ModelSpec
    parts: Parts
    conditions: Conditions
    largest_drop: int
    notices: tuple[str, ...]

    def facts(self, seed: int) -> dict[str, str]:
        """What decides the numbers; of the seed only a digest, of the data and a trace only digests."""
        private = ("seed", "data.source", "population.trace")
        told = {key: json.dumps(value) for key, value in self.settings.items() if key not in private}
        place = self.section.data.source
        return {
            **told,
            "data.source": Path(place).name,
            "model.pretrain": str(self.section.model.pretrain),
            **self._trace(),
            "seed digest": seed_digest(seed),
            "data digest": _digest(self.data.train.digest, self.data.public.digest, self.data.test.digest),
            **{f"version of {name}": version for name, version in versions().items()},
        }

    def _trace(self) -> dict[str, str]:
        trace = self.conditions.availability
        if not isinstance(trace, Trace):
            return {}
        return {"population.trace": Path(trace.source).name, "trace digest": trace.digest}


def prepared(study: Study) -> Prepared:
    """Check the section, read the samples, share them out, see who comes and goes.

    Raises:
        InputError: something in the study or its data does not fit.
    """
    section = study.training
    if section is None:
        remedy = "see studies/filter-digits.yaml"
        raise StudyError("this study has no section training", where="training", remedy=remedy)
    settings = section.settings(study.seed) | study.population.settings()
    agreed, come_and_go = terms(settings), coming(settings)
    data = samples(source(settings))
    spec = model(settings, data.train)
    shares = parts(data.train, settings)
    largest, notices = section.largest_drop(study.seed, data.train.classes), []
    changed = study.population.model_dump(mode="json", exclude_defaults=True)
    if changed:
        told = ", ".join(f"{key} {value}" for key, value in changed.items())
        notices.append(f"clients come and go: {told}")
    if agreed.filter is not None and section.filter is not None:
        warning = check_drop(largest, _declared(section), force=section.filter.force)
        notices += [warning] if warning else []
    return Prepared(section, settings, agreed, data, spec, shares, come_and_go, largest, tuple(notices))


def start_of(prepared: Prepared, seed: int) -> NDArray[np.float64] | None:
    """(P,) parameters after ordinary SGD on public samples, or ``None``: the seed's own."""
    model_section = prepared.section.model
    if not model_section.pretrain:
        return None
    from coalmine.clients.training.fast.shadows import Reference

    public = prepared.data.public
    return Reference(prepared.spec, public, model_section.pretrain, seed, model_section.pretrain_lr).theta


def audit_facts(prepared: Prepared, seed: int) -> dict[str, str]:
    """What decides the numbers of an audit."""
    section = prepared.section
    asked = {f"audit.{key}": json.dumps(value) for key, value in section.audit.model_dump(mode="json").items()}
    return {**prepared.facts(seed), **asked, "models_at_once": str(section.models_at_once)}


def begin(folder: Path, facts: dict[str, str], *, resume: bool, replace: bool = False) -> None:
    """Note what a run is when it begins; a resumed one must be the same, a new one the same but for packages.

    Args:
        replace: start anew whatever another run left in the folder.

    Raises:
        StudyError: nothing to resume, or another run than the one that began.
        StorageError: a damaged note.
    """
    path = folder / _MANIFEST
    if not path.is_file():
        if resume:
            raise StudyError("there is nothing to resume", where=str(folder), remedy="run without --resume")
    elif not replace:
        before = _noted(path)
        changed = [key for key in {**before, **facts} if before.get(key) != facts.get(key)]
        told = "; ".join(f"{key} was {before.get(key)}, is {facts.get(key)}" for key in changed[:_SHOWN])
        if resume and changed:
            raise StudyError(
                f"the run is not the one that began: {told}",
                where=str(folder),
                remedy="undo the changes, or start anew with --force",
            )
        if not all("version of " in key for key in changed):
            raise StudyError(
                f"this folder holds another run: {told}",
                where=str(folder),
                remedy="use a folder of its own (--set study=NAME); --force replaces what is there",
            )
    if not resume:
        write_bytes(path, json.dumps(facts, indent=1).encode(), mode=0o600)


def _noted(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StorageError(
            "the run's manifest is damaged", where=str(path), remedy="start it anew with --force"
        ) from error
    if not isinstance(found, dict):
        raise StorageError("the run's manifest is damaged", where=str(path), remedy="start it anew with --force")
    return found


def flower_version() -> str:
    """Of the library that carries the messages.

    Raises:
        StudyError: it is not installed.
    """
    try:
        return importlib.metadata.version("flwr")
    except importlib.metadata.PackageNotFoundError:
        raise StudyError(
            "Flower is not installed", where="coalmine train", remedy="pip install 'coalmine[federated]'"
        ) from None


def in_local_folder(settings: dict[str, Any], **files: Path) -> dict[str, Any]:
    """The settings with files of this machine."""
    return {**settings, **{name: str(path.resolve()) for name, path in files.items()}}


def _declared(section: TrainingSection) -> int:
    return section.declared_size or section.data.train


def _digest(*digests: str) -> str:
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:16]
