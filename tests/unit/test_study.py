"""Study files: every key checked, every mistake named with its place and what would be right."""

import re
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from coalmine.deploy.demo import demo_study
from coalmine.deploy.study import Study
from coalmine.deploy.study_file import build_study, read_study
from coalmine.protocol.errors import InputError, StudyError
from coalmine.protocol.privacy import Mechanism

TEMPLATE = files("coalmine.deploy").joinpath("study-template.yaml").read_text(encoding="utf-8")


def read(folder, text, *overrides):
    path = folder / "study.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_study(path, overrides)


def flat(values, prefix=""):
    for key, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def test_an_empty_study_is_the_default(tmp_path):
    assert read(tmp_path, "") == read(tmp_path, "{}\n") == Study()
    assert Study().privacy.mechanism() == Mechanism()
    assert Study().folder == Path("runs/study")


def test_the_template_is_the_default_but_for_its_name(tmp_path):
    template, default = dict(flat(read(tmp_path, TEMPLATE).model_dump())), dict(flat(Study().model_dump()))
    changed = {key for key in default if template[key] != default[key]}
    assert changed == {"study"}


def test_the_template_names_every_key():
    for key in dict(flat(Study().model_dump())):
        assert re.search(rf"^[ #]*{key.split('.')[-1]}:", TEMPLATE, flags=re.MULTILINE), key


def test_every_commented_key_of_the_template_is_a_key(tmp_path):
    lines = (line.replace("# ", "", 1) if line.startswith("  # ") else line for line in TEMPLATE.splitlines())
    whole = yaml.safe_load("\n".join(lines))
    assert {"path", "base_url", "key_file"} <= {key.split(".")[-1] for key, _ in flat(whole)}
    build_study(whole)


def test_the_demo_is_a_valid_study():
    assert build_study(demo_study()).study == "demo"
    demo_study()["privacy"]["sigma"] = 0.0
    assert "sigma" not in demo_study()["privacy"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("privcy: {}", r"unknown key 'privcy' \(did you mean 'privacy'\? known: audit, bank, "),
        ("privacy: {sgima: 1}", r"unknown key 'privacy\.sgima' \(did you mean 'sigma'\? known: clip, delta"),
        ("zzzzz: 1", r"unknown key 'zzzzz' \(known: audit"),
        ("privacy: {sgima: 1}\nzzzzz: 2", "unknown key .*; 1 more"),
        ("1: 2", "study.yaml: 1: "),
        ("privacy: {q: 0}", r"privacy\.q: 0.*needs a participation rate in \(0, 1\]"),
        ("privacy: {q: 1.5}", r"privacy\.q: 1\.5"),
        ("privacy: {q: .nan}", r"privacy\.q: nan"),
        ("privacy: {sigma: 0}", r"privacy\.sigma: 0.*> 0"),
        ("privacy: {sigma: .inf}", r"privacy\.sigma"),
        ("privacy: {delta: 1}", r"privacy\.delta: 1.*\(0, 1\)"),
        ("privacy: {clip: -1}", r"privacy\.clip"),
        ("privacy: {votes_per_record: 2.5}", r"privacy\.votes_per_record: .*got 2\.5"),
        ("privacy: {q: lots}", r"privacy\.q: .*number.*got 'lots'"),
        ("privacy: 3", "privacy: .*got 3"),
        ("seed: -1", "seed: .*greater than or equal to 0.*got -1"),
        ("study: ../away", "study: .*got '../away'"),
        ("audit: {attacks: [exakt]}", r"audit\.attacks\.0: .*'exact'.*got 'exakt'"),
        ("audit: {attacks: []}", "at least one attack"),
        ("audit: {attacks: [nonce, nonce]}", "an attack is named twice"),
        ("audit: {pool: 63}", r"pool \(63\) is smaller than the number of probes \(64\)"),
        ("audit: {probes: 65, pool: 65}", r"probes \(65\) exceed canary_records \(64\)"),
        ("audit: {canary_records: 65}", r"canary_records \(65\) exceeds privacy.max_records \(64\)"),
        ("audit: {alpha: 1}", r"audit\.alpha: .*less than 1"),
        ("audit: {alpha: .nan}", r"audit\.alpha"),
        ("audit: {replays: -1}", r"audit\.replays"),
        ("audit: {trials: 0}", r"audit\.trials: .*greater than or equal to 1"),
        ("audit: {split: three}", r"audit\.split: .*'four' or 'two'"),
        ("bank: {size: 68}", "a bank of 68 cannot hold 64 probes beside 5 candidates"),
        ("data: {min_records: 65}", "min_records exceeds privacy.max_records"),
        ("data: {source: file}", "source 'file' needs a path"),
        ("data: {source: fil}", r"data\.source: .*'sotu', 'personas', 'file' or 'huggingface'.*got 'fil'"),
        ("data: {test: 0}", r"data\.test"),
        ("generator: {kind: openai, model: m}", "needs base_url and model"),
        ("generator: {min_cosine: 1.5}", r"generator\.min_cosine"),
        ("generator: {timeout: 0}", r"generator\.timeout"),
        ("randomness: {kind: protected}", "needs a key_file"),
        ("population: {sampling: fixed}", "sampling 'fixed' is not offered: .*one user displaces another.*'poisson'"),
        ("population: {availability: trace}", "availability 'trace' needs a trace"),
        ("population: {availability: often}", r"population\.availability: .*'diurnal' or 'trace'.*got 'often'"),
        ("population: {dropout: 1.5}", r"population\.dropout: 1\.5 is not allowed"),
        ("population: {availability: diurnal, lowest: 0.9, highest: 0.5}", r"population\.highest: 0\.5"),
        ("population: {availability: independent, rate: -1}", r"population\.rate"),
        ("population: {deadline: 0}", r"population\.deadline"),
        ("execution: {workers: 0}", r"execution\.workers"),
        ("privacy:\n  q: 0.1\n\tsigma: 1\n", r"study\.yaml, line 3: not valid YAML"),
        ("seed: [1\nstudy: a\n", r"study\.yaml, line 2: not valid YAML"),
        ("a: 1\n---\nb: 2", r"line 2: not valid YAML"),
        ("? [a]\n: b\n", r"study\.yaml, line 1: not valid YAML: a list or a mapping is used as a key"),
        ("privacy: {? {a: 1} : b}", r"line 1: not valid YAML: a list or a mapping is used as a key"),
        ('output: "x\\0y"', r"output: 'x\\x00y' holds a character that no file name"),
        ('bank: {file: "x\\0y"}', r"bank: file: '.*x\\x00y' holds a character"),
        ('output: "x\\uD800y"', r"output: 'x\\ud800y' holds a character"),
        ("privacy: {sigma: 1e-320}", r"privacy\.sigma: 1e-320 .*from 1e-09 to 1e\+06"),
        ("tracking: {team: a/b c}", r"tracking\.team: 'a/b c' is not allowed"),
        ("tracking: {uri: 'sqlite:////proc/x/y.db'}", r"tracking\.uri: sqlite:////proc/x/y\.db: cannot be written"),
        ("study: 2026-13-45", r"study\.yaml: not valid YAML: month must be"),
        ("[" * 500, r"study\.yaml: not valid YAML"),
        ("a: !!python/object:os.system x", "line 1: not valid YAML"),
        ("seed: \x01", "not valid YAML"),
        (b"study: \xff", "cannot be read: .*utf-8"),
        ("- study", "a study is a mapping of sections"),
        ("study", "a study is a mapping of sections"),
    ],
)
def test_a_mistake_is_named(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, text)
    assert caught.value.exit_code == 2
    assert "validation error" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(StudyError, match=r"none\.yaml: there is no such file .*coalmine init"):
        read_study(tmp_path / "none.yaml")
    with pytest.raises(StudyError, match="cannot be read"):
        read_study(tmp_path)


def test_overrides_win_and_are_read_as_yaml(tmp_path):
    found = read(
        tmp_path,
        "privacy: {sigma: 2.0, q: 0.2}",
        "privacy.sigma=0.7",
        "privacy.delta=1e-6",
        "audit.attacks=[nonce]",
        "tracking.uri=http://a/?b=c",
        "execution.workers=null",
        "seed=3",
        "seed=4",
    )
    assert (found.privacy.sigma, found.privacy.q, found.privacy.delta) == (0.7, 0.2, 1e-6)
    assert (found.audit.attacks, found.tracking.uri, found.seed) == (("nonce",), "http://a/?b=c", 4)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("privacy.sigma", r"--set privacy\.sigma: an override has the form section\.key=value"),
        ("=3", r"--set =3: .*form"),
        ("privacy..q=1", "form"),
        ("privacy sigma=1", "form"),
        ("seed.x=3", r"--set seed\.x=3: 'seed' is not a section"),
        ("privacy.q=[", r"--set privacy\.q=\[: the value is not valid YAML"),
        ("study=2026-13-45", "the value is not valid YAML"),
        ("privacy.sgima=1", "did you mean 'sigma'"),
        ("privacy.q=", r"privacy\.q"),
        ("privacy.q=7", r"privacy\.q: 7"),
    ],
)
def test_a_wrong_override_is_named(tmp_path, override, message):
    with pytest.raises(StudyError, match=message):
        read(tmp_path, "seed: 1", override)


def test_relative_paths_are_anchored_at_the_study_file(tmp_path, monkeypatch):
    folder = tmp_path / "studies"
    (folder / "saved").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    found = read(
        folder,
        "data: {source: file, path: users.jsonl}\nbank: {file: banks/b.parquet}\n"
        "randomness: {kind: protected, key_file: /secrets/key}",
    )
    assert found.data.path == folder / "users.jsonl"
    assert found.bank.file == folder / "banks" / "b.parquet"
    assert found.randomness.key_file == Path("/secrets/key")
    assert read(folder, "data: {source: huggingface, path: owner/name}").data.path == Path("owner/name")
    assert read(folder, "data: {source: huggingface, path: saved}").data.path == folder / "saved"
    typed = read(folder, "", "data.source=file", "data.path=users.csv")
    assert typed.data.path == Path("users.csv")  # what is typed is relative to where it is typed


def test_a_study_does_not_change():
    with pytest.raises(ValueError, match="frozen"):
        Study().seed = 3
