"""From canaries put in by `coalmine synthesise` to the verb that looks for them."""

import json

import pytest

from coalmine.deploy.commands.canary_echo import canary_echo
from coalmine.deploy.commands.synthesise import synthesise
from coalmine.protocol.errors import DataError, StudyError

pytestmark = pytest.mark.integration


def audit(folder, capsys, **more):
    capsys.readouterr()
    references = sorted(folder.glob("reference-*.csv"))
    assert len(references) == 4
    settings = {"text": "text", "n": 2, "smoothing": 1.0, "normalisation": "probability", "assignment": "random",
                "seed": 0, "as_json": True}  # fmt: skip
    canary_echo(folder / "canaries.csv", folder / "synthetic.csv", references, **{**settings, **more})
    return json.loads(capsys.readouterr().out)


def test_copied_canaries_echo_and_others_do_not(tmp_path, capsys):
    for name, rate in (("leaky", 1.0), ("blind", 0.0)):
        synthesise(tmp_path / name, users=200, records_per_user=3, rate=rate, canaries=80, as_json=True)
    leaky, blind = (audit(tmp_path / name, capsys) for name in ("leaky", "blind"))
    assert (leaky["members"] + leaky["non_members"], leaky["assurance"]) == (80, "formal")
    assert leaky["auc"] > 0.75
    assert leaky["p_value"] <= 1e-4  # the least that 9,999 permutations can say
    assert blind["p_value"] > 1e-3
    assert audit(tmp_path / "leaky", capsys, assignment="unknown")["assurance"] == "heuristic"
    other = audit(tmp_path / "leaky", capsys, normalisation="log-probability")
    assert other["auc"] > 0.75
    assert other["auc"] != leaky["auc"]
    for bad in ({"normalisation": "none"}, {"assignment": "maybe"}, {"smoothing": 0.0}):
        with pytest.raises(StudyError):
            audit(tmp_path / "leaky", capsys, **bad)
    with pytest.raises(DataError, match="column"):
        audit(tmp_path / "leaky", capsys, text="words")
