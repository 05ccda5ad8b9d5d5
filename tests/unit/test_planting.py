"""From an attack and a canary to a planted bank."""

from types import SimpleNamespace

import numpy as np
import pytest

from coalmine.auditor.attacks import ATTACKS, CanaryKind, PoolKind
from coalmine.auditor.design import probe_positions
from coalmine.auditor.public import public_users
from coalmine.clients.data.users import User
from coalmine.clients.encoder.fake import HashEncoder
from coalmine.deploy.planting import build_pool, canary_client, plant
from coalmine.deploy.prepare import Prepared
from coalmine.deploy.study_file import build_study
from coalmine.protocol.bank import Bank
from coalmine.protocol.errors import BankError
from coalmine.protocol.randomness import Purpose, stream
from coalmine.server.generate.fake import FakeGenerator

ENCODER = HashEncoder(16)
STUDY = build_study(
    {
        "bank": {"size": 30},
        "privacy": {"votes_per_record": 2, "max_records": 4},
        "data": {"min_records": 1, "test": 20},
        "audit": {"probes": 4, "pool": 12, "canary_records": 4, "canaries": 2},
    }
)
USERS = [User(f"u{n}", tuple(f"private word{n} thing{r}" for r in range(4)), ("",) * 4) for n in range(5)]
GROUPS = [("nothing",), ("copies",), ("paraphrases",), ("nonces",)]


@pytest.fixture(scope="module")
def prepared():
    bank = Bank(tuple(f"candidate {n} word{n % 5}" for n in range(30)), tuple("ab" * 15), ENCODER.id)
    candidates = ENCODER.encode(bank.texts)
    positions = probe_positions(30, 4, stream(STUDY.seed, Purpose.PROBE_POSITIONS))
    records = ENCODER.encode([record for user in USERS[2:] for record in user.records])
    public = public_users(
        records, np.array([0, 4, 8, 12]), candidates, positions, STUDY.privacy.mechanism(), 48, threads=1
    )
    return Prepared(bank, candidates, positions, public, public, tuple(ENCODER.encode(u.records) for u in USERS[:2]))


def planted(name, number, prepared, study=STUDY):
    attack = ATTACKS[name]
    canary = canary_client(attack.canary, number, study, prepared, ENCODER)
    pool = build_pool(
        attack.pool, number, USERS[number - 1], study, prepared, ENCODER, FakeGenerator(), lambda done: None
    )
    return canary, pool, plant(attack, number, canary, pool, study, prepared)


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("number", [1, 2])
def test_probes_stand_at_the_declared_positions_and_nowhere_else(name, number, prepared):
    _, pool, found = planted(name, number, prepared)
    np.testing.assert_array_equal(found.candidates, ENCODER.encode(found.bank.texts))
    np.testing.assert_array_equal(found.probes, found.candidates[prepared.positions])
    changed = [n for n in range(30) if found.bank.texts[n] != prepared.bank.texts[n]]
    assert changed == ([] if name == "ordinary" else prepared.positions.tolist())
    assert {found.bank.texts[n] for n in changed} <= set(pool.texts)
    assert (found.bank.labels, found.bank.encoder_id) == (prepared.bank.labels, ENCODER.id)
    assert prepared.bank.texts[0].startswith("candidate")


@pytest.mark.parametrize("name", ATTACKS)
def test_planting_is_reproducible(name, prepared):
    assert planted(name, 1, prepared)[2].bank == planted(name, 1, prepared)[2].bank


def test_copies_are_the_canarys_records_in_order(prepared):
    found = planted("exact", 2, prepared)[2]
    assert [found.bank.texts[n] for n in prepared.positions] == list(USERS[1].records)


def test_pools_have_their_size_and_say_where_they_come_from(prepared):
    _, pool, _ = planted("paraphrase", 1, prepared)
    assert (len(pool.texts), len(set(pool.texts))) == (12, 12)
    assert sorted(set(pool.sources)) == [0, 1, 2, 3]
    assert pool.generated.texts == pool.texts
    np.testing.assert_array_equal(pool.embedded, ENCODER.encode(pool.texts))
    _, pool, _ = planted("nonce", 1, prepared)
    assert (len(set(pool.texts)), pool.generated) == (12, None)
    assert planted("ordinary", 1, prepared)[1].texts == ()


def test_nonce_pools_ask_no_generator_and_no_user(prepared):
    generator = FakeGenerator()
    nobody = SimpleNamespace()
    pool = build_pool(PoolKind.NONCES, 1, nobody, STUDY, prepared, ENCODER, generator, lambda done: None)
    assert len(pool.texts) == 12
    assert generator.asked == []


def test_canaries_carry_no_user_name(prepared):
    for kind in CanaryKind:
        first, second = (canary_client(kind, number, STUDY, prepared, ENCODER) for number in (1, 2))
        assert not {user.id for user in USERS} & set(f"{first.id} {second.id}".split())
        assert first.id != second.id
        assert first.records.shape == (4, 16)
        assert (first.records != second.records).any()
    assert canary_client(CanaryKind.REAL, 1, STUDY, prepared, ENCODER).records is prepared.canaries[0]


def test_a_probe_that_stands_in_the_bank_already_is_refused_without_its_text(prepared):
    outside = next(n for n in range(30) if n not in prepared.positions)
    texts = [*prepared.bank.texts[:outside], USERS[0].records[1], *prepared.bank.texts[outside + 1 :]]
    spoilt = Prepared(
        **{**vars(prepared), "bank": Bank(tuple(texts), prepared.bank.labels, ENCODER.id)},
    )
    with pytest.raises(BankError, match="attack 'exact' would plant a text that the bank holds already") as caught:
        planted("exact", 1, spoilt)
    assert "private" not in str(caught.value)
