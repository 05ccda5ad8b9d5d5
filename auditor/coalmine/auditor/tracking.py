"""The one door to MLflow: a study's runs on SQLite in its folder, or on a server.

A server that does not answer costs a study nothing: what would have been logged waits in ``mlflow-spool`` and
:func:`replay_spool` sends it later. Every call names its run; MLflow's global "active run" is never used.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from coalmine.auditor.report.table import records
from coalmine.auditor.result import RoundAudit
from coalmine.auditor.runs import Run, runs
from coalmine.protocol.errors import StorageError, StudyError

if TYPE_CHECKING:
    from mlflow import MlflowClient

ARTIFACTS = ("report.html", "rounds.html", "figures/*.svg", "figures/*.png", "releases/*.parquet")
"""What is copied from a study's folder, and nothing else: a folder may hold caches and keys too."""
SPOOL = "mlflow-spool"
_ID = "coalmine.record"
_PLACE = "coalmine.place"
_MOST_RUNS = 50_000
_SQLITE = "sqlite:///"
_TABLE = "tables/canaries.json"
_TABLES = {"disclosures": "tables/tests.json"}
"""Where a table's rows are not canaries, by the kind of the first run."""


@dataclass(frozen=True)
class Tracking:
    """Where runs go.

    Attributes:
        team: the experiment is ``<team>/<study>``.
        uri: an MLflow tracking URI; ``None`` for ``MLFLOW_TRACKING_URI``, or else SQLite in the study's folder.
    """

    team: str = "default"
    uri: str | None = None

    def __post_init__(self) -> None:
        if not self.team.strip() or "/" in self.team:
            raise StudyError(f"{self.team!r} is not allowed", where="tracking.team", remedy="needs a name without '/'")


@dataclass(frozen=True)
class Begun:
    """Names the runs of one study, so that logging them again finds them; ``milliseconds`` since 1970 dates them."""

    record: str
    milliseconds: int


@dataclass(frozen=True)
class Tracked:
    """Where a study can be found now.

    Attributes:
        store: the tracking store, without credentials.
        run_id: the study's run, ``None`` where it was spooled.
        spooled: the waiting record, ``None`` where it was logged.
        reason: why it was spooled.
    """

    store: str
    run_id: str | None = None
    spooled: Path | None = None
    reason: str = ""

    @property
    def notice(self) -> str | None:
        """What to tell a person; ``None`` where all went well."""
        if self.spooled is None:
            return None
        why = f"MLflow at {self.store} could not be used ({self.reason})"
        return f"{why}; the runs wait in {self.spooled} to be sent later"


@dataclass(frozen=True)
class _Record:
    """Everything that is logged, free of MLflow types; files lie beside it."""

    id: str
    experiment: str
    milliseconds: int
    runs: tuple[Run, ...]
    table: list[dict[str, Any]]
    files: tuple[str, ...]


def track(
    audit: RoundAudit, folder: Path, settings: Tracking, *, round: int = 1, begun: Begun | None = None
) -> Tracked:
    """Log an audited round: the study as parent run, the round and every attack as its children.

    Args:
        folder: the study's folder; what ``ARTIFACTS`` names there is logged. Holds the SQLite store and the spool.
        round: step of every metric, from 1.
        begun: for a study that may have been tracked before it was stopped: its runs are used again.

    Raises:
        StudyError: the experiment was deleted.
        StorageError: the store or the spool in ``folder`` cannot be written.
    """
    return track_runs(audit.study, runs(audit, round), records(audit), folder, settings, begun)


def track_runs(
    name: str,
    told: tuple[Run, ...],
    table: list[dict[str, Any]],
    folder: Path,
    settings: Tracking,
    begun: Begun | None = None,
    results: Path | None = None,
) -> Tracked:
    """Log runs into the experiment ``<team>/<name>``; the first is the parent of all that name no other.

    Args:
        folder: the study's, with its store and spool. results: where the files to be logged lie, if not there.

    Raises:
        StudyError, StorageError: as :func:`track`.
    """
    place = results or folder
    files = sorted(path for pattern in ARTIFACTS for path in place.glob(pattern))
    begun = begun or Begun(uuid.uuid4().hex, int(time.time() * 1000))
    record = _Record(
        begun.record,
        f"{settings.team}/{name}",
        begun.milliseconds,
        told,
        table,
        tuple(path.relative_to(place).as_posix() for path in files),
    )
    return _deliver(record, place, folder, settings)


def store_of(uri: str | None, folder: Path) -> str:
    """The tracking URI: the one that is named, MLFLOW_TRACKING_URI, or SQLite in the folder of results."""
    return uri or os.environ.get("MLFLOW_TRACKING_URI") or f"{_SQLITE}{(folder / 'mlflow.db').resolve()}"


def require_store(uri: str | None) -> None:
    """Refuse a SQLite store in a folder that cannot be written; a server may well answer later.

    Raises:
        StorageError: no file can be made there.
    """
    if uri is None or not uri.startswith(_SQLITE):
        return
    place = Path(uri.removeprefix(_SQLITE)).absolute()
    folder = next(above for above in place.parents if above.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise StorageError(
            f"cannot be written: {error.strerror}",
            where=f"tracking.uri: {_shown(uri)}",
            remedy="name a folder that can, or leave it out",
        ) from error


def replay_spool(folder: Path, settings: Tracking) -> tuple[Tracked, ...]:
    """Send what waits in a study's folder, oldest first; what was sent half before is completed.

    Raises:
        StudyError, StorageError: as :func:`track`; also a damaged record.
    """
    waiting = [(_read(path), path) for path in (folder / SPOOL).glob("*/record.json")]
    waiting.sort(key=lambda pair: pair[0].milliseconds)
    return tuple(_deliver(record, path.parent / "files", folder, settings) for record, path in waiting)


def _deliver(record: _Record, files: Path, folder: Path, settings: Tracking) -> Tracked:
    uri = store_of(settings.uri, folder)
    spooled = folder / SPOOL / record.id
    try:
        with _client(uri) as client:
            run_id = _log(client, record, files, (folder / "mlartifacts").resolve() if _local(uri) else None)
    except _failures() as error:
        if _local(uri):
            reason = f"the tracking store failed: {type(error).__name__}"
            raise StorageError(reason, where=_shown(uri), remedy="free space, or move a damaged store away") from error
        if not spooled.exists():
            _write_spool(record, files, spooled)
        return Tracked(_shown(uri), spooled=spooled, reason=type(error).__name__)
    shutil.rmtree(spooled, ignore_errors=True)
    return Tracked(_shown(uri), run_id=run_id)


def _log(client: MlflowClient, record: _Record, files: Path, artifacts: Path | None) -> str:
    from mlflow.entities import Metric, Param, RunTag
    from mlflow.utils.mlflow_tags import MLFLOW_LOGGED_ARTIFACTS, MLFLOW_PARENT_RUN_ID, MLFLOW_SOURCE_NAME

    experiment = _experiment(client, record.experiment, artifacts)
    earlier = client.search_runs([experiment], f"tags.`{_ID}` = '{record.id}'", max_results=_MOST_RUNS)
    before = {run.data.tags[_PLACE]: run.info.run_id for run in earlier if _PLACE in run.data.tags}
    ids: list[str] = []
    try:
        for place, run in enumerate(record.runs):
            own = {_ID: record.id, _PLACE: str(place)}  # given at once: a run that is stopped right here is found again
            tags = run.tags | own | {MLFLOW_SOURCE_NAME: "coalmine"}
            if ids:
                tags[MLFLOW_PARENT_RUN_ID] = ids[run.parent or 0]
            if str(place) in before:
                ids.append(before[str(place)])
            else:
                made = client.create_run(experiment, record.milliseconds, tags=own, run_name=run.name)
                ids.append(made.info.run_id)
            client.log_batch(
                ids[-1],
                metrics=[
                    Metric(key, value, record.milliseconds, step)
                    for step, metrics in ((run.step, run.metrics), *run.series)
                    for key, value in metrics.items()
                ],
                params=[Param(key, value) for key, value in run.params.items()],
                tags=[RunTag(key, value) for key, value in tags.items()],
            )
        for name in record.files:
            client.log_artifact(ids[0], str(files / name), str(Path(name).parent) if "/" in name else None)
        table = _TABLES.get(record.runs[0].tags.get("kind", ""), _TABLE)
        client.log_dict(ids[0], _split(record.table), table)
        client.set_tag(ids[0], MLFLOW_LOGGED_ARTIFACTS, json.dumps([{"path": table, "type": "table"}]))
    except BaseException:
        _abandon(client, ids)
        raise
    for run_id in reversed(ids):
        client.set_terminated(run_id)
    return ids[0]


def _abandon(client: MlflowClient, ids: Sequence[str]) -> None:
    """No run stays "running" after a failure; a store that is gone cannot be told, and the first error counts."""
    try:
        for run_id in ids:
            client.set_terminated(run_id, "FAILED")
    except _failures() as error:
        logging.getLogger(__name__).debug("runs could not be closed: %s", type(error).__name__)


def _experiment(client: MlflowClient, name: str, artifacts: Path | None) -> str:
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name, artifacts.as_uri() if artifacts else None))
        except MlflowException as error:
            found = client.get_experiment_by_name(name)
            if error.error_code != "RESOURCE_ALREADY_EXISTS" or found is None:
                raise
    if found.lifecycle_stage != "active":
        remedy = "restore it with `mlflow experiments restore`, or name another team"
        raise StudyError("the experiment was deleted", where=name, remedy=remedy)
    return str(found.experiment_id)


def _split(table: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """What ``log_table`` writes, without the data frame that it needs for it."""
    return {"columns": list(table[0]) if table else [], "data": [list(row.values()) for row in table]}


def _write_spool(record: _Record, files: Path, spooled: Path) -> None:
    try:
        spooled.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=spooled.parent, prefix="."))
        try:
            for name in record.files:
                target = temporary / "files" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(files / name, target)
            (temporary / "record.json").write_text(json.dumps(asdict(record), allow_nan=False), encoding="utf-8")
            temporary.rename(spooled)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    except OSError as error:
        raise StorageError(
            error.strerror or "cannot be written", where=str(spooled), remedy="free some space"
        ) from error


def _read(path: Path) -> _Record:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        told = tuple(Run(**run) for run in fields.pop("runs"))
        return _Record(runs=told, files=tuple(fields.pop("files")), **fields)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise StorageError("a spooled record is damaged", where=str(path), remedy="remove its folder") from error


@contextmanager
def _client(uri: str) -> Iterator[MlflowClient]:
    """MLflow, without telemetry and without its chatter; a dead server is given up after seconds, not minutes."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    chatter = [logging.getLogger(name) for name in ("mlflow", "alembic", "urllib3.connectionpool")]
    before = [logger.level for logger in chatter]
    from mlflow import MlflowClient

    for logger in chatter:
        logger.setLevel(logging.ERROR)
    try:
        if uri.startswith(_SQLITE) and not (store := Path(uri.removeprefix(_SQLITE))).exists():
            _create(store)
        yield MlflowClient(tracking_uri=uri)
    finally:
        for logger, level in zip(chatter, before, strict=True):
            logger.setLevel(level)


def _create(store: Path) -> None:
    """A new SQLite store takes its place when it is complete: an interruption leaves no half-migrated one behind.

    They are not flushed to disk one by one, which halves the wait; the finished file is.
    """
    from mlflow import MlflowClient
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def unflushed(connection: Any, _: object) -> None:
        connection.execute("PRAGMA synchronous = OFF")

    with tempfile.TemporaryDirectory(dir=store.parent, prefix=".mlflow-") as folder:
        building = Path(folder, store.name)
        event.listen(Engine, "connect", unflushed)
        try:
            MlflowClient(tracking_uri=f"{_SQLITE}{building}")
        finally:
            event.remove(Engine, "connect", unflushed)
        with building.open("rb+") as file:
            os.fsync(file.fileno())
        building.replace(store)


def _failures() -> tuple[type[Exception], ...]:
    """What a tracking store that cannot be used raises: its own errors, the network's and the database's."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    return (MlflowException, SQLAlchemyError, OSError)


def _local(uri: str) -> bool:
    return uri.startswith("sqlite:")


def _shown(uri: str) -> str:
    """A URI that may be shown: without user, password and query."""
    parts = urlsplit(uri)
    return uri if _local(uri) else f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
