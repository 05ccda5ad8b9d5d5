"""The one-run audit through real shards and a real aggregator on Ray."""

import pytest
from rich.console import Console

from coalmine.clients.encoder.fake import HashEncoder
from coalmine.deploy.cluster import cluster
from coalmine.deploy.progress import Stages
from coalmine.deploy.study_file import build_study

pytestmark = pytest.mark.integration

_STUDY = {
    "study": "many-canaries",
    "seed": 4,
    "data": {
        "source": "personas",
        "users": 64,
        "records_per_user": 6,
        "min_records": 4,
        "auxiliary": 20,
        "calibration": 10,
        "test": 30,
    },
    "bank": {"size": 360},
    "privacy": {"max_records": 8, "q": 1.0, "sigma": 0.4},
    "audit": {
        "canaries": 1,
        "canary_records": 6,
        "probes": 6,
        "pool": 8,
        "one_run": {"canaries": 60, "probes_each": 5, "records": 2, "guesses": [15, 15]},
    },
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The audit of the same study with one worker and with two, and of one with more noise."""
    from coalmine.deploy.campaign import Workshop
    from coalmine.deploy.one_run import run_one_run
    from coalmine.deploy.parts import generator
    from coalmine.deploy.prepare import people

    cache = tmp_path_factory.mktemp("cache")
    audits = {}
    with cluster(2, 256 << 20):
        for name, workers, changes in (("one", 1, ()), ("two", 2, ()), ("noisy", 2, ("privacy.sigma=40",))):
            study = build_study({**_STUDY, "privacy": dict(_STUDY["privacy"])}, changes)
            workshop = Workshop(HashEncoder(64), generator(study, cache), Stages(Console(quiet=True)), workers)
            audits[name] = run_one_run(study, people(study), workshop)
    return audits


def test_included_canaries_are_told_from_the_others(found):
    audit = found["one"]
    assert audit.guesses.canaries == 60
    assert audit.guesses.correct >= 28
    assert 1 < audit.steinke.eps_lower < audit.claim.eps_pld_upper
    assert not audit.curve_rejected, "the mechanism keeps its claim"
    assert audit.claim_p_value > 0.5


def test_more_workers_change_nothing(found):
    assert found["one"] == found["two"]


def test_noise_hides_the_canaries(found):
    assert found["noisy"].guesses.correct < 25
    assert found["noisy"].steinke.eps_lower < 0.5
