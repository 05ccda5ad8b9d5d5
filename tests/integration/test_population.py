"""Real shards and a real aggregator on Ray: the same releases whatever the sharding, and nothing else comes out."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from coalmine.clients.client import Client
from coalmine.clients.encoder.fake import HashEncoder
from coalmine.clients.population.availability import Diurnal
from coalmine.clients.population.conditions import Conditions, Deadline
from coalmine.clients.shard import Hosted
from coalmine.deploy.cluster import cluster
from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.errors import CommitmentMismatch, ContributionError, RoundAborted
from coalmine.protocol.noise import SharedNoise
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Protected, Simulated, participates
from coalmine.server.aggregate import draw_noise

pytestmark = pytest.mark.integration

MECHANISM = Mechanism(q=0.3, votes_per_record=3)
SIMULATED = Simulated(5)
POSITIONS = np.arange(0, 300, 30)
BANK = Bank(tuple(f"candidate text number {i} about topic {i % 17}" for i in range(300)), ("",) * 300, "hash")
ENCODER = HashEncoder(32)


def _clients(users, records):
    texts = [f"user {u} wrote message {r} about topic {(u * 7 + r) % 23}" for u in range(users) for r in range(records)]
    return Hosted(tuple(f"user {u}" for u in range(users)), ENCODER.encode(texts), np.arange(users + 1) * records)


@pytest.fixture(scope="module")
def ray_cluster():
    with cluster(2, 200 << 20):
        yield


@pytest.fixture
def start(ray_cluster):
    from coalmine.deploy.simulation import SimulatedPopulation

    started = []

    def start(workers, randomness=SIMULATED, hosted=None, **more):
        population = SimulatedPopulation(
            hosted or _clients(60, 4), ENCODER, MECHANISM, randomness, POSITIONS, workers, **more
        )
        started.append(population)
        return population

    yield start
    for population in started:
        population.close()


def _histograms(population, rounds, guest=None):
    population.admit(guest)
    return np.array([release.histogram for release in population.releases(rounds, BANK, commit(BANK))])


def test_releases_do_not_depend_on_shards_or_on_a_killed_worker(start):
    guest = Client("canary", ENCODER.encode(["a canary sings", "in the mine"]))
    one = _histograms(start(1), range(40), guest)
    np.testing.assert_array_equal(one, _histograms(start(4), range(40), guest))

    population = start(2)
    victim = population.process_ids()[1]
    killer = threading.Timer(0.05, os.kill, (victim, signal.SIGKILL))
    killer.start()
    parts = [_histograms(population, range(first, first + 4), guest) for first in range(0, 40, 4)]
    killer.join()
    deadline = time.monotonic() + 60
    while population.process_ids()[1] == victim and time.monotonic() < deadline:
        time.sleep(0.1)
    assert population.process_ids()[1] != victim
    np.testing.assert_array_equal(one, np.concatenate(parts))


def test_clients_refuse_a_bank_that_was_changed_after_the_commitment(start):
    population = start(2)
    with pytest.raises(CommitmentMismatch):
        population.releases([1000], BANK.replace({7: "something else"}), commit(BANK))
    np.testing.assert_array_equal(_histograms(population, [0]), _histograms(start(1), [0]))


def test_the_simulation_owner_sees_the_votes_of_the_plain_definition(start):
    from coalmine.protocol.vote import vote

    hosted = _clients(9, 4)
    population = start(2, hosted=hosted)
    seen = population.votes_on(BANK, commit(BANK), np.arange(len(BANK)))
    candidates = ENCODER.encode(BANK.texts)
    plain = [
        vote(hosted.records[low:high], candidates, MECHANISM, population.bits)
        for low, high in zip(hosted.offsets, hosted.offsets[1:], strict=False)
    ]
    np.testing.assert_array_equal(seen, np.array(plain) / 2.0**population.bits)


def test_protected_noise_is_not_reproducible_but_the_draw_is(start):
    secret = Protected(bytes(range(32)))
    first, second = (start(1, secret).releases([3], BANK, commit(BANK))[0] for _ in range(2))
    assert first.randomness == second.randomness == "protected"
    assert not np.array_equal(first.histogram, second.histogram)
    # Same cohort: only the noise differs, so the difference has standard deviation sqrt(2) sigma C.
    spread = np.std(first.histogram - second.histogram) / (np.sqrt(2) * MECHANISM.noise_std)
    assert 0.75 < spread < 1.25  # 300 coordinates: six standard errors on either side


def test_clients_that_come_and_go_give_the_same_releases_on_any_number_of_shards(start):
    coming = Conditions(Diurnal(0.1, 0.9), dropout=0.2, deadline=Deadline(2.0))
    one, four = start(1, conditions=coming), start(4, conditions=coming)
    for hour in (0, 12):
        for population in (one, four):
            population.set_time(hour)
        np.testing.assert_array_equal(_histograms(one, range(3)), _histograms(four, range(3)))
        everywhere = np.arange(len(BANK))
        seen = one.votes_on(BANK, commit(BANK), everywhere)
        np.testing.assert_array_equal(seen, four.votes_on(BANK, commit(BANK), everywhere))
        users = [f"user {u}" for u in range(60)]
        answering = coming.answering(SIMULATED.participation_key, hour, users)
        np.testing.assert_array_equal(seen.any(axis=1), answering)
        noise = draw_noise(SIMULATED, MECHANISM.noise_std, one.bits, len(BANK), 7) / 2.0**one.bits
        drawn = np.array([participates(SIMULATED.participation_key, 7, user, MECHANISM.q) for user in users])
        np.testing.assert_allclose(_histograms(one, [7])[0] - noise, drawn @ seen, atol=1e-12)
        one, four = start(1, conditions=coming), start(4, conditions=coming)  # a round is released once


def test_noise_in_shares_is_the_same_on_any_number_of_shards_and_an_abort_comes_home(start):
    sharing = SharedNoise(10, 40)
    one, four = start(1, sharing=sharing), start(4, sharing=sharing)
    releases = _histograms(one, range(3))
    np.testing.assert_array_equal(releases, _histograms(four, range(3)))
    assert not np.array_equal(releases, _histograms(start(1), range(3)))
    alone = start(2, sharing=SharedNoise(60, None))
    with pytest.raises(RoundAborted, match="round 5: fewer than 60 participants survived") as caught:
        _histograms(alone, [5])
    assert caught.value.exit_code == 2
    with pytest.raises(ContributionError, match="already released"):
        _histograms(alone, [5])


def test_nothing_is_spilled_to_disk(start):
    import ray

    session = Path(ray._private.worker.global_worker.node.get_session_dir_path())
    population = start(2)
    for first in range(0, 400, 100):
        _histograms(population, range(first, first + 100))
    assert not [path for path in session.rglob("*") if path.is_file() and "spill" in str(path.relative_to(session))]
    held = Path("/proc/self/mounts").read_text().splitlines()
    plasma = Path(ray._private.worker.global_worker.node.plasma_store_socket_name)
    assert plasma.exists()
    assert any(line.split()[1] == "/dev/shm" and line.split()[2] == "tmpfs" for line in held)
