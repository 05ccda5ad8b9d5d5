"""The auditor's ear believes a release only after its commitment."""

from dataclasses import replace

import numpy as np
import pytest

from coalmine.auditor.collector import Collector
from coalmine.protocol.bank import Bank, Commitment, commit
from coalmine.protocol.errors import ProtocolError
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.release import Release

COMMITMENT = commit(Bank(("a", "b"), ("", ""), "e"))
RELEASE = Release(3, np.array([1.0, -2.0]), COMMITMENT, Mechanism(), "simulated")


def committed():
    collector = Collector()
    collector.committed(3, COMMITMENT)
    return collector


def test_releases_are_taken_once_in_order():
    collector = committed()
    collector.committed(4, COMMITMENT)
    later = replace(RELEASE, round=4)
    collector.released(later)
    collector.released(RELEASE)
    assert collector.take() == [later, RELEASE]
    assert collector.take() == []


def test_a_release_needs_a_commitment_before_it():
    collector = Collector()
    with pytest.raises(ProtocolError, match="round 3: a release without a commitment"):
        collector.released(RELEASE)
    collector.committed(4, COMMITMENT)
    with pytest.raises(ProtocolError, match="without a commitment"):
        collector.released(RELEASE)


def test_a_second_commitment_is_refused_even_if_it_is_the_same():
    for again in (COMMITMENT, Commitment("0" * 64, 2)):
        collector = committed()
        with pytest.raises(ProtocolError, match="round 3: a second commitment"):
            collector.committed(3, again)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"commitment": Commitment("0" * 64, 2)}, "does not belong"),
        ({"commitment": Commitment(COMMITMENT.digest, 3), "histogram": np.zeros(3)}, "does not belong"),
        ({"histogram": np.zeros(3)}, "does not belong"),
        ({"histogram": np.zeros((2, 1))}, "does not belong"),
        ({"histogram": np.array([1.0, np.nan])}, "not finite"),
        ({"histogram": np.array([np.inf, 1.0])}, "not finite"),
    ],
)
def test_a_release_that_does_not_fit_is_refused_and_not_kept(change, message):
    collector = committed()
    with pytest.raises(ProtocolError, match=f"round 3: .*{message}"):
        collector.released(replace(RELEASE, **change))
    assert collector.take() == []
