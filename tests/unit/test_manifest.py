"""A resumed study is the one that began."""

import pytest

from coalmine.deploy.manifest import begin
from coalmine.deploy.study_file import build_study
from coalmine.protocol.errors import StorageError, StudyError


def study(folder, **sections):
    return build_study({"seed": 7, "output": str(folder), **sections})


def start(folder, *, resume=False, accept_changes=False, replace=False, digest="d1", **sections):
    return begin(study(folder, **sections), digest, resume=resume, accept_changes=accept_changes, replace=replace)


def test_resuming_finds_what_began(tmp_path):
    first = start(tmp_path)
    assert start(tmp_path, resume=True) == first


def test_speed_may_change(tmp_path):
    first = start(tmp_path)
    assert start(tmp_path, resume=True, execution={"workers": 1}, tracking={"mlflow": False}) == first


def test_nothing_to_resume(tmp_path):
    with pytest.raises(StudyError, match="nothing to resume"):
        start(tmp_path, resume=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"privacy": {"sigma": 2.0}}, r"privacy\.sigma was 1\.0, is 2\.0"),
        ({"digest": "d2"}, "data digest was d1, is d2"),
        ({"seed": 8}, "seed digest was"),
        ({"rounds": {"count": 2}}, r"rounds\.count was 1, is 2"),
    ],
)
def test_a_change_is_shown_and_refused_unless_accepted(tmp_path, change, said):
    first = start(tmp_path)
    (tmp_path / "journal" / "nonce-1.json").write_text("{}")
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases" / "round-1.parquet").write_text("kept")
    with pytest.raises(StudyError, match=said):
        start(tmp_path, resume=True, **change)
    assert (tmp_path / "journal" / "nonce-1.json").exists()
    accepted = start(tmp_path, resume=True, accept_changes=True, **change)
    assert accepted.record == first.record
    assert not (tmp_path / "journal" / "nonce-1.json").exists()
    assert (tmp_path / "releases" / "round-1.parquet").exists()
    assert start(tmp_path, resume=True, **change) == accepted


def test_the_seed_is_not_written_down(tmp_path):
    start(tmp_path, seed=123454321)
    assert "123454321" not in (tmp_path / "journal" / "manifest.json").read_text()


def test_a_new_start_forgets_the_old_one(tmp_path):
    first = start(tmp_path)
    (tmp_path / "banks").mkdir()
    (tmp_path / "banks" / "round-2.parquet").write_text("old")
    (tmp_path / "findings.json").write_text("{}")
    second = start(tmp_path)
    assert second.record != first.record
    assert not (tmp_path / "banks").exists()
    assert not (tmp_path / "findings.json").exists()


def test_another_study_in_the_folder_is_replaced_only_when_asked(tmp_path):
    start(tmp_path, rounds={"count": 2})
    pages = [tmp_path / name for name in ("rounds.html", "rounds.json", "report.html", "findings.json", "bank.parquet")]
    for page in pages:
        page.write_text("two rounds")
    (tmp_path / "mlflow.db").write_text("history")
    with pytest.raises(StudyError, match=r"another study: rounds\.count was 2, is 1 .*--force"):
        start(tmp_path)
    assert all(page.exists() for page in pages)
    start(tmp_path, replace=True)
    assert not any(page.exists() for page in pages)
    assert (tmp_path / "mlflow.db").exists()


def test_newer_packages_do_not_make_another_study(tmp_path, monkeypatch):
    start(tmp_path)
    monkeypatch.setattr("coalmine.deploy.manifest.versions", lambda: {"numpy": "99"})
    start(tmp_path)


def test_protected_releases_are_not_replaced_by_a_simulated_study(tmp_path):
    start(tmp_path, randomness={"kind": "protected", "key_file": str(tmp_path / "key")})
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases" / "round-1.parquet").write_text("a release")
    with pytest.raises(StudyError, match="second disclosure"):
        start(tmp_path, replace=True)
    assert (tmp_path / "releases" / "round-1.parquet").exists()


def test_protected_releases_are_never_drawn_a_second_time(tmp_path):
    protected = {"randomness": {"kind": "protected", "key_file": str(tmp_path / "key")}}
    start(tmp_path, **protected)
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases" / "round-1.parquet").write_text("a release")
    with pytest.raises(StudyError, match="second disclosure"):
        start(tmp_path, **protected)
    assert (tmp_path / "releases" / "round-1.parquet").exists()
    start(tmp_path, resume=True, **protected)


def test_a_damaged_manifest(tmp_path):
    start(tmp_path)
    (tmp_path / "journal" / "manifest.json").write_text("{")
    with pytest.raises(StorageError, match="damaged"):
        start(tmp_path, resume=True)
