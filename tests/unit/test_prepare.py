"""Before the first commitment: hosted users, and a bank that is generated or read."""

from types import SimpleNamespace

import numpy as np
import pytest

from coalmine.auditor.design import probe_positions
from coalmine.clients.data.files import FileSource
from coalmine.clients.data.personas import PersonasSource
from coalmine.clients.data.sotu import SotuSource
from coalmine.clients.data.splits import Splits
from coalmine.clients.data.users import User
from coalmine.clients.encoder.fake import HashEncoder
from coalmine.deploy.parts import data_source, randomness
from coalmine.deploy.prepare import build_bank, embed_users, prepare
from coalmine.deploy.study_file import build_study
from coalmine.protocol.bank import Bank
from coalmine.protocol.errors import BankError, ModelError, StorageError
from coalmine.protocol.randomness import Purpose, Simulated, stream
from coalmine.server.bank_file import write_bank
from coalmine.server.generate.fake import FakeGenerator

ENCODER = HashEncoder(8)
USERS = {"ann": ("x", "y"), "bob": (), "eve": ("z",)}
SMALL = {"bank": {"size": 12}, "audit": {"probes": 2, "pool": 4, "canary_records": 2}}


def people(*canaries, labels=("good", "bad")):
    return SimpleNamespace(labels=labels, splits=SimpleNamespace(canaries=canaries))


def made(study, crowd, generator=None):
    return build_bank(study, generator or FakeGenerator(), ENCODER, crowd, lambda done: None)


def test_every_group_keeps_its_users_and_their_rows():
    ann, bob, eve = (User(name, records, ("",) * len(records)) for name, records in USERS.items())
    hosted = embed_users(Splits(aux=(bob, ann), calibration=(), test=(ann,), canaries=(eve,)), ENCODER)
    assert {name: group.ids for name, group in hosted.items()} == {
        "aux": ("bob", "ann"),
        "calibration": (),
        "test": ("ann",),
        "canaries": ("eve",),
    }
    for group in hosted.values():
        assert len(group.offsets) == len(group.ids) + 1
        for user, name in enumerate(group.ids):
            rows = group.records[group.offsets[user] : group.offsets[user + 1]]
            np.testing.assert_array_equal(rows, ENCODER.encode(USERS[name]))


def test_positions_and_canaries_are_fixed_before_any_attack():
    users = [User(f"u{n}", (f"a{n}", f"b{n}", f"c{n}"), ("",) * 3) for n in range(4)]
    study = build_study(dict(SMALL))
    hosted = embed_users(Splits((users[0],), (users[1],), (users[2],), (users[3],)), ENCODER)
    bank, _ = made(study, people())
    positions = probe_positions(12, 2, stream(0, Purpose.PROBE_POSITIONS))
    ready = prepare(study, hosted, bank, ENCODER, positions, 48, 1)
    np.testing.assert_array_equal(ready.positions, positions)
    np.testing.assert_array_equal(ready.candidates, ENCODER.encode(bank.texts))
    np.testing.assert_array_equal(ready.canaries[0], ENCODER.encode(users[3].records))
    np.testing.assert_array_equal(ready.auxiliary.records, ENCODER.encode(users[0].records))
    np.testing.assert_array_equal(ready.calibration.records, ENCODER.encode(users[1].records))
    assert not np.isin(ready.auxiliary.retained.index, ready.positions).any()


def test_a_generated_bank_has_its_size_labels_and_encoder():
    bank, pool = made(build_study(dict(SMALL)), people())
    assert (len(bank), bank.encoder_id) == (12, ENCODER.id)
    assert set(bank.labels) == {"good", "bad"}
    assert all(text.startswith(label) for text, label in zip(bank.texts, bank.labels, strict=True))
    assert pool.texts == bank.texts


def test_a_generated_bank_holds_no_text_of_a_canary():
    study = build_study(dict(SMALL))
    texts = made(study, people())[0].texts
    canary = User("u", texts[3:5], ("", ""))
    again = made(study, people(canary))[0].texts
    assert len(again) == 12
    assert not set(canary.records) & set(again)


def test_a_bank_file_is_read_and_must_fit(tmp_path):
    path = tmp_path / "bank.parquet"
    bank = Bank(tuple(f"text {n}" for n in range(12)), ("",) * 12, ENCODER.id)
    write_bank(bank, path)
    study = build_study({**SMALL, "bank": {"size": 12, "file": str(path)}})
    generator = FakeGenerator()
    assert made(study, people(), generator)[0] == bank
    assert generator.asked == []
    with pytest.raises(BankError, match="holds 12 candidates, the study says 13"):
        made(build_study({**SMALL, "bank": {"size": 13, "file": str(path)}}), people())
    write_bank(Bank(bank.texts, bank.labels, "another encoder"), path)
    with pytest.raises(ModelError, match="made for encoder another encoder, the study uses hashed-words:8"):
        made(study, people())


def test_sources_follow_the_study(tmp_path):
    def source(**data):
        return data_source(build_study({"data": data, "seed": 7}))

    assert isinstance(source(source="sotu"), SotuSource)
    assert source(source="personas", users=9, records_per_user=3) == PersonasSource(users=9, records_per_user=3, seed=7)
    found = source(source="file", path="x.csv", user_column="who", on_bad_record="drop")
    assert isinstance(found, FileSource)
    assert "who" in repr(found)
    assert "drop" in repr(found)


def test_randomness_follows_the_study(tmp_path):
    assert randomness(build_study({"seed": 7})) == Simulated(7)
    key = tmp_path / "key"
    study = build_study({"randomness": {"kind": "protected", "key_file": str(key)}})
    found = randomness(study)
    assert (found.kind, found.participation_key) == ("protected", key.read_bytes())
    assert randomness(study) == found
    key.chmod(0o644)
    with pytest.raises(StorageError):
        randomness(study)
