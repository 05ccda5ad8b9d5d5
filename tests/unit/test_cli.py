"""The command line: what calculators answer, and how mistakes end."""

import errno
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command import COALMINE

from coalmine.auditor import clopper_pearson, gdp
from coalmine.auditor.eps_bound import Split, eps_lower
from coalmine.auditor.one_run import Guesses, gdp_mu_lower, steinke_eps_lower
from coalmine.deploy import cli, study_file, sweep_file
from coalmine.deploy.commands.output import answer as write
from coalmine.protocol.accounting import pld_epsilon, prv_epsilon

HEAVY = {"torch", "ray", "mlflow", "sentence_transformers", "transformers", "opacus", "matplotlib", "pandas", "scipy"}


@pytest.fixture
def coalmine(monkeypatch, capsys):
    """Runs the entry point; gives code, stdout, stderr."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["coalmine", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code or 0, *capsys.readouterr()

    return call


def answer(coalmine, line):
    code, out, err = coalmine(*line.split(), "--json")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    return json.loads(out)


def test_claim(coalmine):
    lower, upper = pld_epsilon(0.1, 1.0, 1, 1e-5)
    expected = {"prv": prv_epsilon(0.1, 1.0, 1, 1e-5), "pld": {"lower": lower, "upper": upper}}
    assert answer(coalmine, "calc claim --q 0.1 --sigma 1 --rounds 1 --delta 1e-5") == expected


@pytest.mark.parametrize(
    ("words", "split"), [("", Split.FOUR), ("--split four", Split.FOUR), ("--split two", Split.TWO)]
)
def test_eps_lower(coalmine, words, split):
    found = answer(coalmine, f"calc eps-lower --tp 90 --fp 5 --n1 100 --n0 110 --delta 1e-6 --alpha 0.1 {words}")
    assert found == {"eps_lower": eps_lower(90, 5, 100, 110, 1e-6, 0.1, split).eps_lower}


def test_clopper_pearson(coalmine):
    found = answer(coalmine, "calc clopper-pearson --x 3 --n 40 --gamma 0.01")
    assert found == {
        "lower": float(clopper_pearson.lower(3, 40, 0.01)),
        "upper": float(clopper_pearson.upper(3, 40, 0.01)),
    }


def test_gdp(coalmine):
    assert answer(coalmine, "calc gdp --mu 1.5 --delta 1e-5") == {"eps": gdp.eps(1.5, 1e-5)}


def test_one_run(coalmine):
    seen = Guesses(1000, 100, 95)
    mu = gdp_mu_lower(seen, 0.1)
    assert answer(coalmine, "calc one-run --canaries 1000 --guesses 100 --correct 95 --delta 1e-5 --level 0.1") == {
        "steinke": {"eps": steinke_eps_lower(seen, 1e-5, 0.1), "assurance": "formal"},
        "fdp": {"mu": mu, "eps": gdp.eps(mu, 1e-5), "assurance": "heuristic"},
    }


def test_people_get_one_line_a_value_and_what_the_values_are(coalmine):
    line = "calc clopper-pearson --x 3 --n 4 --gamma 0.0025"
    _, out, _ = coalmine(*line.split())
    *values, meaning = out.splitlines()
    assert [shown.partition(" = ")[0] for shown in values] == ["lower", "upper"]
    assert meaning == "bounds on a probability, 99.75 % confidence each · formal"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("claim --q 0.1 --sigma 1", "δ = 1e-5 add/remove user exact"),
        ("eps-lower --tp 90 --fp 5 --n1 100 --n0 110 --alpha 0.1", "90 % δ = 1e-5 neighbours unit formal"),
        ("gdp --mu 1", "δ = 1e-5 neighbours unit exact"),
        ("one-run --canaries 100 --guesses 20 --correct 19", "95 % δ = 1e-5 add/remove formal heuristic"),
        ("user-match --guesses 20 --correct 20", "95 % δ = 0 add/remove user formal"),
    ],
)
def test_people_are_told_level_adjacency_and_assurance(coalmine, line, said):
    _, out, _ = coalmine("calc", *line.split())
    assert [word for word in said.split() if word not in out] == []


def test_undefined_values_are_null_in_json(capsys):
    write({"eps": float("inf"), "more": [{"prv": float("nan")}, (1, True, None)]}, True)
    assert json.loads(capsys.readouterr().out) == {"eps": None, "more": [{"prv": None}, [1, True, None]]}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "calc claim --q 2 --sigma 1",
            "privacy.q: 2.0 is not allowed (needs a participation rate in (0, 1], at",
        ),
        ("calc claim --q 1e-320 --sigma 1", "privacy.q: 1e-320 is not allowed"),
        ("calc claim --q 0.1 --sigma 1e308", "privacy.sigma: 1e+308 is not allowed (needs a noise multiplier"),
        ("calc claim --q nan --sigma 1", "privacy.q"),
        ("calc claim --q 0.1 --sigma 0", "privacy.sigma"),
        ("calc claim --q 0.1 --sigma 1 --delta 1", "privacy.delta"),
        ("calc eps-lower --tp 5 --fp 3 --n1 4 --n0 4", "tp: 5 of 4 trials"),
        ("calc eps-lower --tp 4 --fp 3 --n1 4 --n0 4 --alpha 2", "alpha"),
        ("calc eps-lower --tp 4 --fp 3 --n1 4 --n0 4 --split fuor", "did you mean 'four'? known: four, two"),
        ("calc clopper-pearson --x 5 --n 3 --gamma 0.05", "needs integers from 0 to 3"),
        ("calc clopper-pearson --x 5 --n 30 --gamma 0", "gamma"),
        ("calc gdp --mu -1", "mu"),
        ("calc one-run --canaries 10 --guesses 20 --correct 3", "20 guesses on 10 canaries"),
        ("calc one-run --canaries 10 --guesses 5 --correct 5 --level 2", "level"),
        ("calc one-run --canaries 10 --guesses 5 --correct 5 --level 0.95", "level: a bound that is wrong"),
        ("run none.yaml", "none.yaml: there is no such file (`coalmine init` writes one)"),
        ("run study.yaml --set privacy.sgima=1", "did you mean 'sigma'?"),
        ("run study.yaml --set privacy.sigma", "an override has the form section.key=value"),
        ("bank build none.yaml", "none.yaml: there is no such file"),
        ("demo --set privacy.q=0", "privacy.q: 0.0 is not allowed"),
        ("demo --set data.tset=3", "did you mean 'test'?"),
        ("data describe none.csv", "none.csv: there is no such file"),
        ("audit arrays none.json", "none.json"),
        ("audit disclosures --train a.csv --holdout b.csv --synthetic c.csv --k 99999999999999999999", "k: (99999"),
        (
            "audit disclosures --train a.csv --holdout b.csv --synthetic c.csv --out o --team a/b",
            "tracking.team: 'a/b'",
        ),
        ("init study.yaml", "study.yaml: the file exists (choose another name, or --force)"),
        ("init no/such/folder.yaml", "cannot be written"),
    ],
)
def test_a_mistake_ends_with_code_2_and_one_message(coalmine, tmp_path, monkeypatch, line, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.yaml").write_text("seed: 1\n")
    code, out, err = coalmine(*line.split())
    assert (code, out) == (2, "")
    assert err.startswith("coalmine: ")
    assert message in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["study.yaml"]
    assert (tmp_path / "study.yaml").read_text() == "seed: 1\n"


@pytest.mark.parametrize("line", ["calc gdp --mu 1 --json", "calc gdp --mu 1", "--help"])
@pytest.mark.parametrize(("stdout", "cause"), [(">&-", "it is closed"), (">/dev/full", "No space left on device")])
def test_an_output_that_cannot_be_written_is_one_message(line, stdout, cause):
    command = shlex.join([*COALMINE, *line.split()])
    done = subprocess.run(["/bin/sh", "-c", f"{command} {stdout}"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"coalmine: standard output cannot be written: {cause}\n"


def test_output_is_not_blamed_for_a_disk_that_is_full_elsewhere(coalmine, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "elsewhere")

    monkeypatch.setattr(sweep_file, "read_points", full)
    monkeypatch.setattr(sys, "argv", ["coalmine", "run", "study.yaml"])
    with pytest.raises(OSError, match="elsewhere"):
        cli.main()


@pytest.mark.parametrize(
    "line",
    ["nonsense", "calc claim --q many --sigma 1", "calc claim --q 0.1", "run", "calc claim --q .1 --sigma 1 --x 2"],
)
def test_wrong_usage_ends_with_code_2(coalmine, line):
    code, out, err = coalmine(*line.split())
    assert (code, out) == (2, "")
    assert "Traceback" not in err


def test_init_writes_a_study_that_can_be_read(coalmine, tmp_path):
    path = tmp_path / "my.yaml"
    code, out, err = coalmine("init", path)
    assert (code, out) == (0, "")
    assert f"coalmine run {path}" in err
    assert study_file.read_study(path).study == "my-study"
    path.write_text("mine")
    assert coalmine("init", path)[0] == 2
    assert path.read_text() == "mine"
    assert coalmine("init", path, "--force")[0] == 0
    assert study_file.read_study(path).study == "my-study"


def test_describe_shows_no_record(coalmine, tmp_path):
    path = tmp_path / "users.csv"
    path.write_text("user,text\na,very private words\na,more of them\nb,and these\n")
    _, shown, _ = coalmine("data", "describe", path)
    assert "records of fewer than 2 words" in shown
    assert "records over 2,000 characters" in shown
    found = answer(coalmine, f"data describe {path}")
    assert found["users"] == 2
    for out in (json.dumps(found), coalmine("data", "describe", path)[1]):
        assert "private" not in out
        assert "more of them" not in out


def test_a_file_name_is_shown_as_it_is(coalmine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("[bold]users.csv").write_text("user,text\na,some words\nb,more words\n")
    assert "[bold]users.csv" in coalmine("data", "describe", "[bold]users.csv")[1]


def test_a_name_that_cannot_be_written_is_refused(coalmine):
    files = ["--train", "a.csv", "--holdout", "b.csv", "--synthetic", "c.csv"]
    code, _, err = coalmine("audit", "disclosures", *files, "--name", "\ud800")
    assert (code, err) == (2, "coalmine: --name: the name holds half a character (needs text)\n")


def test_an_interruption_ends_with_code_130(coalmine, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep_file, "read_points", interrupted)
    assert coalmine("run", "study.yaml")[0] == 130


def test_doctor_says_what_is_there(coalmine, tmp_path):
    code, out, _ = coalmine("doctor", "--output", tmp_path / "runs", "--json")
    facts = json.loads(out)
    assert {"python", "torch", "ray", "mlflow", "cores", "memory GiB", "encoder", "folder results", "telemetry"} <= set(
        facts
    )
    assert code == (1 if facts["problems"] else 0)
    assert list(tmp_path.iterdir()) == []


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['coalmine', '--help']\n"
        "from coalmine.deploy.cli import main\n"
        "try: main()\n"
        "except SystemExit as ended: print('\\n', ended.code, *sorted({name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    *shown, last = done.stdout.strip().splitlines()
    status, *modules = last.split()
    assert status == "0"
    assert "typer" in modules
    assert not HEAVY & set(modules)
    for verb in ("demo", "run", "report", "init", "doctor", "calc", "audit", "data", "bank", "models"):
        assert any(verb in line.split() for line in shown)


def test_the_installed_command_ends_like_the_entry_point(tmp_path):
    command = Path(sys.executable).with_name("coalmine")
    done = subprocess.run([command, "run", "none.yaml"], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "coalmine: none.yaml: there is no such file (`coalmine init` writes one)\n"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("privacy.q=1.5", "privacy.q"),
        ("privacy.simga=1", "sigma"),
        ("data.test=5000", "5000"),
        ("audit.pool=3", "pool"),
        ("encoder.model=/nowhere/at/all", "nowhere"),
        ("bank.file=none.parquet", "none.parquet"),
    ],
)
def test_a_mistake_in_a_study_is_one_message_and_leaves_nothing(coalmine, tmp_path, monkeypatch, override, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COALMINE_CACHE", str(tmp_path / "cache"))
    Path("study.yaml").write_text(
        "data: {source: personas, users: 20, records_per_user: 4, min_records: 4, auxiliary: 4, calibration: 4,"
        " test: 6}\n"
        "bank: {size: 32}\n"
        "audit: {canaries: 1, canary_records: 4, probes: 4, pool: 8}\n"
    )
    code, out, err = coalmine("run", "study.yaml", "--set", override, "--set", "output=runs/bad")
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err
    assert not Path("runs/bad").exists()


@pytest.mark.parametrize("sweep", ["", "sweep:\n  training.eps: [1, 2]\n"])
def test_a_file_about_training_alone_is_not_run_as_an_audit_of_votes(coalmine, tmp_path, monkeypatch, sweep):
    monkeypatch.chdir(tmp_path)
    Path("study.yaml").write_text(f"study: mine\ntraining: {{clients: 3, eps: 5}}\n{sweep}")
    code, out, err = coalmine("run", "study.yaml")
    assert (code, out) == (2, "")
    assert "about training alone" in err
    assert "coalmine audit training" in err
    assert not Path("runs").exists()
