"""Every command of the README does what it says. Continuous integration itself runs `make demo` and `make test`."""

import json
import re
import shlex
from pathlib import Path

import pytest
from command import coalmine

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line.strip()
    for block in re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL)
    for line in block.splitlines()
    if line.strip()
]
SMALLER = [
    "data.min_records=4",
    "data.auxiliary=10",
    "data.calibration=10",
    "data.test=20",
    "bank.size=128",
    "privacy.max_records=8",
    "audit.canary_records=8",
    "audit.probes=8",
    "audit.pool=16",
    "audit.canaries=1",
    "audit.trials=2000",
    "audit.replays=4",
    "audit.attacks=[ordinary, nonce-mu]",
    "rounds.output=60",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from coalmine.clients.data.personas import PersonasSource, write_personas

    folder = tmp_path_factory.mktemp("newcomer")
    table = write_personas(PersonasSource(users=50, records_per_user=8, seed=1))
    with (folder / "users.jsonl").open("w") as file:
        for user in table.users:
            for text, label in zip(user.records, user.labels, strict=True):
                file.write(json.dumps({"user": user.id, "text": text, "label": label}) + "\n")
    return folder


def test_the_first_commands_are_the_two_that_continuous_integration_runs():
    assert COMMANDS[:2] == ["make demo", "make test"]
    script = (ROOT / ".ci" / "run").read_text()
    assert "make demo" in script
    assert "make test" in script


@pytest.mark.parametrize("command", COMMANDS[2:])
def test_command(command, folder):
    program, *arguments = shlex.split(command)
    assert program == "coalmine"
    if arguments[0] == "run":
        arguments += [part for override in SMALLER for part in ("--set", override)]
    if arguments[0] == "synthesise":
        arguments += ["--users", "60"]
    coalmine(*arguments, cwd=folder, cache=folder / "cache")
    if arguments[0] == "run":
        assert (folder / "runs" / "my-study" / "report.html").exists()


def test_pictures_and_links_exist():
    for target in re.findall(r"\]\(((?!http)[^)#]+)\)", README):
        assert (ROOT / target).exists(), target
