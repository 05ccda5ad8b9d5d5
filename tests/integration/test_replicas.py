"""A study that is stopped between adaptive replicas goes on with the next one, and ends with the same numbers."""

import json

import pytest
from rich.console import Console

from coalmine.clients.encoder.fake import HashEncoder
from coalmine.deploy import replicas
from coalmine.deploy.cluster import cluster
from coalmine.deploy.journal import Journal
from coalmine.deploy.progress import Stages
from coalmine.deploy.study_file import build_study

pytestmark = pytest.mark.integration

_STUDY = {
    "study": "replicated",
    "seed": 5,
    "data": {
        "source": "personas",
        "users": 48,
        "records_per_user": 6,
        "min_records": 4,
        "auxiliary": 10,
        "calibration": 10,
        "test": 16,
    },
    "bank": {"size": 96},
    "privacy": {"max_records": 6, "q": 0.2},
    "rounds": {"count": 2, "output": 20},
    "audit": {
        "attacks": ["ordinary", "nonce-mu"],
        "canaries": 1,
        "canary_records": 6,
        "probes": 6,
        "pool": 12,
        "trials": 3000,
        "reduced_trials": 1000,
        "replays": 0,
        "replicas": 2,
    },
}
_ALL = 2 * 2 * 2
"""Attacks, hypotheses, replicas of each."""


class Stopped(Exception):
    pass


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The study without a break; stopped after three replicas and resumed; and with a changed score on disk."""
    from coalmine.deploy.campaign import Workshop
    from coalmine.deploy.parts import generator
    from coalmine.deploy.prepare import people
    from coalmine.deploy.run import run

    folder = tmp_path_factory.mktemp("replicas")
    study = build_study(_STUDY)
    crowd = people(study)
    workshop = Workshop(HashEncoder(64), generator(study, folder / "cache"), Stages(Console(quiet=True)), 2)
    replica, made, most = replicas._replica, [], {"replicas": _ALL}

    def counting(attack, canary, guest, probes, number, campaign):
        if len(made) == most["replicas"]:
            raise Stopped
        made.append((attack.name, guest is not None, number))
        return replica(attack, canary, guest, probes, number, campaign)

    found, counts = {}, {}
    with pytest.MonkeyPatch.context() as patch, cluster(2, 256 << 20):
        patch.setattr(replicas, "_replica", counting)
        for name, place, limit in (("whole", "whole", _ALL), ("stopped", "broken", 3), ("resumed", "broken", _ALL)):
            made.clear()
            most["replicas"] = limit
            try:
                found[name] = run(study, crowd, workshop, Journal(folder / place)).rounds
            except Stopped:
                found[name] = None
            counts[name] = len(made)
        journal = folder / "whole" / "journal"
        (journal / "nonce-mu-replicas.json").unlink()
        (journal / "nonce-mu-replica-1-absent.json").write_text(json.dumps([1e9, 1e9]))
        made.clear()
        found["changed"] = run(study, crowd, workshop, Journal(folder / "whole")).rounds
        counts["changed"] = len(made)
    return found, counts, folder


def test_finished_replicas_are_not_computed_again(runs):
    found, counts, _ = runs
    assert found["stopped"] is None
    assert counts == {"whole": _ALL, "stopped": 3, "resumed": _ALL - 3, "changed": 0}


def test_the_numbers_are_those_of_a_study_without_a_break(runs):
    found, _, _ = runs
    assert found["resumed"] == found["whole"]
    assert {name: len(evidence) for name, evidence in found["whole"].replicas.items()} == {"ordinary": 2, "nonce-mu": 2}


def test_what_is_kept_is_what_the_evidence_is_made_of(runs):
    """A false positive put on disk is counted: nothing is silently computed anew."""
    found, _, _ = runs
    before, after = (found[name].replicas["nonce-mu"][0].details["fpr_upper"] for name in ("whole", "changed"))
    assert after > before
    assert found["changed"].replicas["ordinary"] == found["whole"].replicas["ordinary"]


def test_one_file_holds_one_score_for_each_round(runs):
    _, _, folder = runs
    kept = sorted((folder / "broken" / "journal").glob("*-replica-*.json"))
    assert len(kept) == _ALL
    assert all(len(json.loads(path.read_text())) == 2 for path in kept)
