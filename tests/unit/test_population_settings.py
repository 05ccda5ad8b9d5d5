"""The one reader of the keys ``population.*``: of a study, of a Flower run."""

import tomllib
from pathlib import Path

import pytest

from coalmine.clients.population.availability import Always, Diurnal, Independent
from coalmine.clients.population.conditions import Conditions, Deadline
from coalmine.clients.population.settings import DEFAULTS, PREFIX, conditions
from coalmine.clients.population.trace import Trace
from coalmine.deploy.parts import conditions as voting
from coalmine.deploy.study_file import build_study, read_study
from coalmine.protocol.errors import DataError, StudyError

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("section", "wanted"),
    [
        ({}, Conditions()),
        ({"availability": "independent", "rate": 0.3, "dropout": 0.2}, Conditions(Independent(0.3), 0.2)),
        ({"availability": "diurnal"}, Conditions(Diurnal(0.1, 0.9))),
        (
            {"availability": "diurnal", "lowest": 0, "highest": 1, "peak_hour": 20, "hours_per_round": 0.1},
            Conditions(Diurnal(0.0, 1.0, 20.0, 0.1)),
        ),
        (
            {"availability": "diurnal", "zones": [[-5, 1], [5.75, 1 / 3]]},
            Conditions(Diurnal(0.1, 0.9, zones=((-5.0, 1.0), (5.75, 1 / 3)))),
        ),
        ({"deadline": 2, "median_delay": 0.5, "spread_delay": 0}, Conditions(deadline=Deadline(2.0, 0.5, 0.0))),
        ({"rate": 0.3, "median_delay": 7, "zones": [[1, 1]]}, Conditions()),
    ],
)
def test_a_section_and_its_flat_keys_are_the_same_conditions(section, wanted):
    study = build_study({"population": section}).population
    assert conditions({**study.settings(), "seed": 3}) == study.conditions() == wanted
    assert all(isinstance(value, str | float) for value in study.settings().values())


def test_a_missing_key_is_the_section_s_default_and_flower_s_own():
    flower = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]["population"]
    assert flower == dict(DEFAULTS)
    assert build_study({}).population.settings() == {f"{PREFIX}{key}": value for key, value in DEFAULTS.items()}
    assert conditions({}) == Conditions(Always())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"rat": 0.5}, r"^population\.rat: this key is not known .*rate"),
        ({"rate": "often"}, r"^population\.rate: 'often' is not allowed \(needs a number"),
        ({"rate": True}, r"^population\.rate: True"),
        ({"zones": 3}, r"^population\.zones: 3 is not allowed \(needs a text"),
        ({"availability": "sometimes"}, r"^population\.availability: 'sometimes' is not known"),
        ({"availability": "independent", "rate": 1.5}, r"^population\.rate: 1\.5"),
        ({"availability": "diurnal", "lowest": 0.9, "highest": 0.5}, r"^population\.highest: 0\.5"),
        ({"availability": "diurnal", "zones": "0:1;8:2"}, r"^population\.zones: .*'0:1,8:2'"),
        ({"availability": "diurnal", "zones": "0:1,"}, r"^population\.zones"),
        ({"availability": "diurnal", "zones": "0"}, r"^population\.zones"),
        ({"availability": "diurnal", "zones": "0:1:2"}, r"^population\.zones"),
        ({"availability": "diurnal", "zones": "15:1"}, r"^population\.zones: 15\.0"),
        ({"availability": "trace"}, r"^population\.trace: there is none \(name a CSV"),
        ({"dropout": -0.1}, r"^population\.dropout"),
        ({"deadline": -1}, r"^population\.deadline"),
        ({"deadline": 1.0, "median_delay": 0}, r"^population\.median_delay"),
    ],
)
def test_a_wrong_setting_is_named(settings, said):
    with pytest.raises(StudyError, match=said):
        conditions({f"{PREFIX}{key}": value for key, value in settings.items()})


@pytest.mark.parametrize("section", [{"deadline": 0}, {"zones": []}])
def test_what_stands_for_nothing_in_flat_keys_is_no_value_in_a_study(section):
    with pytest.raises(StudyError, match=f"population.{next(iter(section))}"):
        build_study({"population": section})


def test_a_trace_is_found_beside_its_study_and_is_read_when_it_is_needed(tmp_path):
    (tmp_path / "study.yaml").write_text("population: {availability: trace, trace: who.csv}")
    population = read_study(tmp_path / "study.yaml").population
    with pytest.raises(DataError, match=r"who\.csv: cannot be read"):
        conditions(population.settings())
    (tmp_path / "who.csv").write_text("user,round\nclient 0,1\n")
    found = conditions(population.settings()).availability
    assert isinstance(found, Trace)
    assert [found.rate(b"", time, "client 0") for time in (0, 1)] == [0, 1]
    assert found.digest == Trace(dict(found.windows), "elsewhere").digest
    study = read_study(tmp_path / "study.yaml")
    assert voting(study, ["client 0", "client 1"]).availability == found
    with pytest.raises(DataError, match="names none of the study's 2 voting users"):
        voting(study, ["a", "b"])
    (tmp_path / "who.csv").write_text("user,round\nclient 0,2\n")
    assert conditions(population.settings()).availability.digest != found.digest
