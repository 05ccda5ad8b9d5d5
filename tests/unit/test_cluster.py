import pytest
import ray

from coalmine.deploy.cluster import cluster
from coalmine.protocol.errors import ContributionError


@pytest.fixture
def late(monkeypatch):
    """A Ray that is late so many times; answers how often it was stopped."""
    left, stopped = [], []

    def start(**_):
        if left:
            left.pop()
            raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray, "init", start)
    monkeypatch.setattr(ray, "shutdown", lambda: stopped.append(True))
    return left, stopped


def test_a_late_start_is_tried_again_from_the_beginning(late):
    left, stopped = late
    left.extend("xx")
    with cluster(2, 1 << 20):
        assert len(stopped) == 2
    assert len(stopped) == 3


def test_a_cluster_that_never_starts_is_a_clear_error(late):
    left, stopped = late
    left.extend("xxx")
    with (
        pytest.raises(ContributionError, match=r"3 attempts: The current node timed out.*less busy"),
        cluster(2, 1 << 20),
    ):
        raise AssertionError("the study began without a cluster")
    assert len(stopped) == 3
