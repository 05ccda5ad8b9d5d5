"""A folder of federated training is one run's: another one is not written over it by accident."""

import pytest

from coalmine.deploy.training.prepare import begin
from coalmine.protocol.errors import StorageError, StudyError

FACTS = {"lr": "0.5", "version of numpy": "2.4"}


def test_the_same_run_may_start_again_and_go_on(tmp_path):
    begin(tmp_path, FACTS, resume=False)
    begin(tmp_path, FACTS, resume=False)
    begin(tmp_path, FACTS, resume=True)


def test_newer_packages_may_start_again_but_not_go_on(tmp_path):
    begin(tmp_path, FACTS, resume=False)
    newer = FACTS | {"version of numpy": "2.5"}
    with pytest.raises(StudyError, match=r"not the one that began: version of numpy was 2\.4, is 2\.5"):
        begin(tmp_path, newer, resume=True)
    begin(tmp_path, newer, resume=False)
    begin(tmp_path, newer, resume=True)


@pytest.mark.parametrize("other", [FACTS | {"lr": "0.4"}, FACTS | {"momentum": "0.9"}, {}])
def test_another_run_is_not_replaced_unless_that_is_said(tmp_path, other):
    begin(tmp_path, FACTS, resume=False)
    with pytest.raises(StudyError, match=r"holds another run: (lr|momentum) was") as refused:
        begin(tmp_path, other, resume=False)
    assert "--force" in refused.value.remedy
    begin(tmp_path, FACTS, resume=True)
    begin(tmp_path, other, resume=False, replace=True)
    begin(tmp_path, other, resume=True)


@pytest.mark.parametrize("damage", ["{", "[]", "\0"])
@pytest.mark.parametrize("resume", [False, True])
def test_a_damaged_note_is_said(tmp_path, damage, resume):
    begin(tmp_path, FACTS, resume=False)
    (note,) = tmp_path.iterdir()
    note.write_text(damage)
    with pytest.raises(StorageError, match="damaged"):
        begin(tmp_path, FACTS, resume=resume)
    begin(tmp_path, FACTS, resume=False, replace=True)


def test_nothing_to_go_on_with(tmp_path):
    with pytest.raises(StudyError, match="nothing to resume"):
        begin(tmp_path, FACTS, resume=True)
