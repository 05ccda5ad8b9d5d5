"""What a study has done so far, on disk, so that it can go on where it was stopped.

Only what may be published is kept: banks, noisy releases, finished audits. Participation is a function of the key (or
the seed) and the round, so nothing about a cohort needs to be written down.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from coalmine.auditor.report.write import write_text
from coalmine.protocol.bank import Bank
from coalmine.protocol.errors import StorageError
from coalmine.protocol.pool import Tally
from coalmine.protocol.release import Release
from coalmine.server.bank_file import read_bank, write_bank
from coalmine.server.release_file import read_release, write_release


class Journal:
    """The folder of one study's steps. Files appear whole or not at all.

    Args:
        folder: of the study's results.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def release(self, number: int) -> Release | None:
        """The release of a round, numbered from 0, if there was one."""
        path = self._release(number)
        return read_release(path) if path.exists() else None

    def keep_release(self, release: Release) -> None:
        """Keep a release, before anybody sees it."""
        write_release(release, self._release(release.round))

    def bank(self, number: int) -> tuple[Bank, Tally] | None:
        """The bank of a round and how its texts came about."""
        path = self._bank(number)
        if not path.exists():
            return None
        try:
            tally = Tally(**json.loads(path.with_suffix(".json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise StorageError("the account of a bank is damaged", where=str(path)) from error
        return read_bank(path), tally

    def keep_bank(self, number: int, bank: Bank, tally: Tally) -> None:
        """Keep a bank that was written for a round."""
        path = self._bank(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path.with_suffix(".json"), json.dumps(asdict(tally)))
        write_bank(bank, path)

    def finding(self, name: str, kind: Any) -> Any | None:
        """A finished audit of some type."""
        path = self._finding(name)
        if not path.exists():
            return None
        try:
            return TypeAdapter(kind).validate_python(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise StorageError("a finished audit is damaged", where=str(path), remedy="remove this file") from error

    def keep_finding(self, name: str, finding: Any, kind: Any) -> None:
        """Keep a finished audit. Everything in it may be published."""
        path = self._finding(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(TypeAdapter(kind).dump_python(finding, mode="json")))

    def _release(self, number: int) -> Path:
        return self._folder / "releases" / f"round-{number + 1}.parquet"

    def _bank(self, number: int) -> Path:
        return self._folder / "banks" / f"round-{number + 1}.parquet"

    def _finding(self, name: str) -> Path:
        return self._folder / "journal" / f"{name}.json"
