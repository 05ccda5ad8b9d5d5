"""From a study file with a sweep to its points."""

from pathlib import Path

import pytest

from coalmine.deploy.study_file import read_study
from coalmine.deploy.sweep import site
from coalmine.deploy.sweep_file import read_points
from coalmine.deploy.sweep_studio import _check, _plain
from coalmine.protocol.errors import StudyError

STUDIES = Path(__file__).resolve().parents[2] / "studies"


def written(tmp_path, text):
    path = tmp_path / "study.yaml"
    path.write_text(text)
    return path


GRID = """
study: grid
audit: {replays: 0}
sweep:
  privacy.sigma: [0.5, 1]
  privacy.q: [0.1, 0.2, 0.3]
"""


def test_every_combination_in_the_order_of_the_file(tmp_path):
    points = read_points(written(tmp_path, GRID), ["audit.canaries=2"])
    assert [(p.values["privacy.sigma"], p.values["privacy.q"]) for p in points] == [
        (0.5, 0.1), (0.5, 0.2), (0.5, 0.3), (1, 0.1), (1, 0.2), (1, 0.3),
    ]  # fmt: skip
    assert [(p.study.privacy.sigma, p.study.privacy.q) for p in points[:2]] == [(0.5, 0.1), (0.5, 0.2)]
    assert {p.study.audit.canaries for p in points} == {2}


def test_noise_alone_shares_the_site_and_the_clip_does_not(tmp_path):
    assert len({site(p.study) for p in read_points(written(tmp_path, GRID))}) == 1
    clips = written(tmp_path, "audit: {replays: 0}\nsweep: {privacy.clip: [0.1, 0.2], audit.trials: [1000, 2000]}")
    assert len({site(p.study) for p in read_points(clips)}) == 2
    replayed = written(tmp_path, "sweep: {privacy.sigma: [0.5, 1]}")
    assert len({site(p.study) for p in read_points(replayed)}) == 2


def test_keys_that_change_together_are_one_value(tmp_path):
    (tmp_path / "later.parquet").touch()
    points = read_points(
        written(
            tmp_path,
            "bank: {size: 300}\nsweep: {bank: [{source: labels}, {source: auxiliary}, {file: later.parquet}]}",
        )
    )
    assert [(p.study.bank.source, p.study.bank.size) for p in points] == [
        ("labels", 300), ("auxiliary", 300), ("labels", 300),
    ]  # fmt: skip
    assert [p.study.bank.file for p in points] == [None, None, tmp_path / "later.parquet"]
    assert [_plain(p.values["bank"]) for p in points] == ["source labels", "source auxiliary", "file later.parquet"]
    assert len({site(p.study) for p in points}) == 3


def test_swept_inputs_are_relative_to_the_file_and_names_stay(tmp_path):
    (tmp_path / "model").mkdir()
    points = read_points(written(tmp_path, "sweep: {encoder.model: [model, org/model]}"))
    assert [p.study.encoder.model for p in points] == [str(tmp_path / "model"), "org/model"]


@pytest.mark.parametrize("override", ["privacy.sigma=3", "privacy={sigma: 3}"])
def test_what_is_swept_cannot_be_overridden(tmp_path, override):
    with pytest.raises(StudyError, match="is swept"):
        read_points(written(tmp_path, GRID), [override])
    together = written(tmp_path, "sweep: {privacy: [{sigma: 1, q: 0.1}, {sigma: 2, q: 0.2}]}")
    with pytest.raises(StudyError, match="is swept"):
        read_points(together, [override])
    assert len(read_points(together, ["privacy.clip=0.2"])) == 2


@pytest.mark.parametrize("name", sorted(path.name for path in STUDIES.glob("*.yaml") if "\nsweep:" in path.read_text()))
def test_the_sweeps_that_are_shipped_are_valid(name):
    points = read_points(STUDIES / name)
    _check(points)
    assert len(points) > 1


def test_the_bank_of_a_later_round_fits_the_sweep_that_reads_it():
    later = read_study(STUDIES / "later-bank.yaml")
    *_, swept = read_points(STUDIES / "ablation-bank.yaml")
    assert swept.study.bank.file.resolve() == (STUDIES.parent / later.folder / "banks" / "round-3.parquet").resolve()
    assert later.rounds.count == 3
    assert (later.bank.size, later.data, later.seed, later.audit.canaries) == (
        swept.study.bank.size, swept.study.data, swept.study.seed, swept.study.audit.canaries,
    )  # fmt: skip


def test_a_plain_study_has_no_points_and_a_sweep_is_no_plain_study(tmp_path):
    assert read_points(written(tmp_path, "study: plain")) == ()
    with pytest.raises(StudyError, match="sweeps over several"):
        read_study(written(tmp_path, GRID))


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        ("[1, 2]", "maps keys to lists"),
        ("{}", "maps keys to lists"),
        ("{privacy.sigma: 2}", "needs a list"),
        ("{privacy.sigma: []}", "needs a list"),
        ("{privacy.sigma: [1, 1]}", "occurs twice"),
        ("{privacy.simga: [1, 2]}", "sigma"),
        ("{privacy.sigma: [1, -1]}", "sigma"),
        ("{study.name.deep: [1, 2]}", "not a section"),
        ("{'Privacy Sigma': [1, 2]}", "not a key"),
    ],
)
def test_mistakes(tmp_path, sweep, said):
    with pytest.raises(StudyError, match=said):
        read_points(written(tmp_path, f"study: x\nsweep: {sweep}"))
