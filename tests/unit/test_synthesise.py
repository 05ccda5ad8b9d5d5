"""Generators to audit: what they copy, keep, leave out and refuse."""

import json
import re
from collections import Counter

import numpy as np
import pytest

from coalmine.clients.data.assignment import Design, assign
from coalmine.clients.data.personas import PersonasSource, persona, write_personas
from coalmine.clients.data.texts import read_columns
from coalmine.clients.data.users import User, UserTable
from coalmine.deploy.commands.synthesise import synthesise
from coalmine.protocol.errors import DataError, GeneratorError, StorageError, StudyError
from coalmine.protocol.privacy import PrivacyUnit
from coalmine.server.generate.fake import Answer, FakeGenerator
from coalmine.server.generate.rules import RulesGenerator
from coalmine.server.synthesise.copycat import copycat
from coalmine.server.synthesise.corpus import Corpus, Record, spread
from coalmine.server.synthesise.lessons import lessons, prompt
from coalmine.server.synthesise.noise_level import noise_level
from coalmine.server.synthesise.pieces import byte_pairs
from coalmine.server.synthesise.recipe import Budget, Shape
from coalmine.server.synthesise.rewrite import rewrite

CORPUS = Corpus(
    (("one two three four five six", "red green blue"), ("alpha beta gamma delta epsilon",)), (("a", "b"), ("c",))
)


def test_a_copycat_says_which_records_it_copied():
    fresh = [f"fresh {number}" for number in range(200)]
    made, copies = copycat(CORPUS, fresh, 0.3, np.random.default_rng(0), labels=["f"] * 200)
    assert 20 < len(copies) < 110
    places = {copy.position: copy for copy in copies}
    for position, (text, label) in enumerate(zip(made.texts, made.labels, strict=True)):
        if position in places:
            copy = places[position]
            source = CORPUS.records[copy.user][copy.record]
            assert (text, label) == (source, CORPUS.labels[copy.user][copy.record])
            assert (copy.start, copy.stop) == (0, len(source.split()))
        else:
            assert (text, label) == (fresh[position], "f")


def test_a_passage_is_part_of_its_record_and_short_records_are_copied_whole():
    made, copies = copycat(CORPUS, ["fresh"] * 300, 1.0, np.random.default_rng(0), passage=4)
    assert len(copies) == 300
    lengths = Counter()
    for copy in copies:
        words = CORPUS.records[copy.user][copy.record].split()
        assert made.texts[copy.position] == "fresh " + " ".join(words[copy.start : copy.stop])
        assert copy.stop - copy.start == min(4, len(words))
        lengths[copy.user, copy.record, copy.start] += 1
    assert set(lengths) == {(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 0), (1, 0, 0), (1, 0, 1)}


def test_rates_zero_and_one():
    assert copycat(CORPUS, ["x"] * 50, 0.0, np.random.default_rng(0))[0].texts == ("x",) * 50
    assert "x" not in copycat(CORPUS, ["x"] * 50, 1.0, np.random.default_rng(0))[0].texts
    for bad in ({"rate": -0.1}, {"rate": 1.1}, {"rate": float("nan")}, {"rate": 0.5, "passage": 0}):
        with pytest.raises(StudyError):
            copycat(CORPUS, ["x"], rng=np.random.default_rng(0), **bad)
    with pytest.raises(DataError):
        copycat(CORPUS, [], 0.5, np.random.default_rng(0))


def test_a_rewriter_answers_record_by_record_and_counts_what_is_missing():
    fake = FakeGenerator((Answer.GOOD, Answer.BLANK, Answer.REFUSAL))
    made = rewrite(CORPUS, fake, 1)
    assert made.texts[0].startswith("one two three four five six")
    assert (len(made.texts), made.labels, made.blank) == (1, ("a",), 2)
    with pytest.raises(GeneratorError):
        rewrite(CORPUS, FakeGenerator((Answer.BLANK,)), 1)


def test_rules_keep_an_address_when_they_reword():
    corpus = Corpus((("write to jane.doe7@example.org if you want the details",),), (("",),))
    made = rewrite(corpus, RulesGenerator(), 0)
    assert "jane.doe7@example.org" in made.texts[0]
    assert made.texts[0] != corpus.records[0][0]


def test_nothing_to_learn_from_is_refused():
    for records, labels in (((), ()), (((),), ((),)), ((("a",),), (("x", "y"),))):
        with pytest.raises(DataError):
            Corpus(records, labels)


def test_labels_are_spread_evenly():
    assert Counter(spread(("a", "b", "c"), 8)) == {"a": 3, "b": 3, "c": 2}
    assert CORPUS.known_labels == ("a", "b", "c")


PUBLIC = [text for user in write_personas(PersonasSource(60, 4, seed=3)).users for text in user.records]


def test_pieces_come_from_public_text_and_spell_everything():
    pieces = byte_pairs(PUBLIC, 400)
    assert pieces.size == 402
    for text in (*PUBLIC[:20], "Zürich 🙂 \x00\n<end> <begin>", " two  spaces "):
        coded = pieces.encode(text)
        assert pieces.decode(coded) == text
        assert max(coded) < pieces.begin < pieces.end < pieces.size
    assert len(pieces.encode(PUBLIC[0])) < 0.7 * len(PUBLIC[0].encode())
    again = byte_pairs(PUBLIC, 400)
    assert [again.encode(text) for text in PUBLIC] == [pieces.encode(text) for text in PUBLIC]


def test_lessons_begin_with_the_prompt_and_are_cut():
    pieces = byte_pairs(PUBLIC, 300)
    short, long = lessons([Record(0, "hi", "topic"), Record(1, "word " * 100, "")], pieces, 40)
    assert short.pieces == [*prompt("topic", pieces), *pieces.encode("hi"), pieces.end]
    assert short.given == len(prompt("topic", pieces))
    assert (len(long.pieces), long.given, long.pieces[0]) == (40, 1, pieces.begin)
    (cut,) = lessons([Record(0, "hi", "x" * 500)], pieces, 40)
    assert cut.given == 20


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_noise_keeps_the_budget_and_less_would_not(epsilon):
    budget = Budget(epsilon=epsilon, steps=50, batch=20, unit=PrivacyUnit.RECORD)
    mechanism, claim = noise_level(budget, 400)
    assert (mechanism.q, claim.rounds, claim.unit, claim.delta) == (0.05, 50, PrivacyUnit.RECORD, 1e-5)
    assert claim.eps_pld_lower <= claim.eps_pld_upper <= claim.eps_prv <= epsilon
    assert claim.eps_prv > 0.98 * epsilon - 0.02


def test_numbers_out_of_range_are_refused():
    for make in (
        lambda: Budget(epsilon=0.01),
        lambda: Budget(epsilon=101),
        lambda: Budget(delta=0),
        lambda: Budget(steps=0),
        lambda: Shape(width=30),
        lambda: Shape(vocabulary=100),
    ):
        with pytest.raises(StudyError):
            make()


def test_a_budget_that_no_noise_keeps_is_refused(monkeypatch):
    monkeypatch.setattr("coalmine.server.synthesise.noise_level.prv_epsilon", lambda *knobs: 11.0)
    with pytest.raises(StudyError, match="cannot be kept"):
        noise_level(Budget(epsilon=10.0), 100)


TABLE = UserTable(tuple(User(f"u{number:03d}", ("text",), ("",)) for number in range(101)), "here")


def test_assignment_depends_on_ids_and_seed_alone():
    back = UserTable(TABLE.users[::-1], "there")
    for design in Design:
        drawn = assign(TABLE, design, 0.4, 5)
        assert drawn == assign(back, design, 0.4, 5)
        assert drawn != assign(TABLE, design, 0.4, 6)
        assert {user.id for user in drawn.train} | {user.id for user in drawn.holdout} == {u.id for u in TABLE.users}
        assert len(drawn.train) + len(drawn.holdout) == 101
    assert len(assign(TABLE, Design.FIXED_SIZE, 0.4, 5).train) == 40
    for p in (0.0, 1.0, float("nan")):
        with pytest.raises(StudyError):
            assign(TABLE, Design.BERNOULLI, p, 0)
    with pytest.raises(DataError):
        assign(UserTable(TABLE.users[:1], "one"), Design.BERNOULLI, 0.5, 0)


def test_personas_show_details_that_one_person_has():
    """What an audit of personal details has to go on: rare addresses and numbers, said in records."""
    table = write_personas(PersonasSource(400, 8, seed=1))
    said = Counter()
    for index, user in enumerate(table.users):
        details = persona(1, index).details
        for kind in ("email", "phone", "name"):
            said[kind] += any(details[kind] in text for text in user.records)
    assert all(said[kind] >= 30 for kind in ("email", "phone", "name")), said
    holders = Counter()
    for user in table.users:
        found = {address for text in user.records for address in re.findall(r"[\w.]+@example\.\w+", text)}
        holders.update(found)
    assert sum(count == 1 for count in holders.values()) >= 30


def test_a_folder_is_written_whole_and_never_over_another(tmp_path, capsys):
    folder = tmp_path / "made"
    arguments = {"users": 40, "records_per_user": 4, "seed": 3, "rate": 0.2, "as_json": True}
    synthesise(folder, **arguments)
    manifest = json.loads(capsys.readouterr().out)
    assert manifest["assignment"] | {"p": 0.5, "design": "bernoulli"} == manifest["assignment"]
    assert {path.name for path in folder.iterdir()} == {
        "train.csv", "holdout.csv", "synthetic.csv", "truth.csv", "manifest.json"
    }  # fmt: skip
    assert folder.stat().st_mode & 0o077 == 0
    train = list(read_columns(folder / "train.csv", ("user", "text")))
    holdout = list(read_columns(folder / "holdout.csv", ("user", "text")))
    assert not {user for user, _ in train} & {user for user, _ in holdout}
    assert len({user for user, _ in (*train, *holdout)}) == 40
    synthetic = [text for (text,) in read_columns(folder / "synthetic.csv", ("text",))]
    assert len(synthetic) == len(train) == manifest["records"]["written"]
    truth = list(read_columns(folder / "truth.csv", ("position", "user", "record")))
    assert len(truth) == manifest["copies"] > 0
    own = {}
    for user, text in train:
        own.setdefault(user, []).append(text)
    assert all(synthetic[int(position)] == own[user][int(record)] for position, user, record in truth)
    private = {text for _, text in (*train, *holdout)}
    copied = {int(position) for position, _, _ in truth}
    assert not any(text in private for place, text in enumerate(synthetic) if place not in copied)
    with pytest.raises(StorageError, match="already"):
        synthesise(folder, **arguments)
    synthesise(tmp_path / "again", **arguments)
    for name in ("train.csv", "synthetic.csv", "truth.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()
    with pytest.raises(StudyError):
        synthesise(tmp_path / "bad", **{**arguments, "rate": 2.0})
    assert {path.name for path in tmp_path.iterdir()} == {"made", "again"}


def test_canaries_are_users_of_one_split_and_begin_like_nobody_in_either(tmp_path, capsys):
    folder = tmp_path / "made"
    synthesise(folder, users=120, records_per_user=6, generator="none", canaries=40, canary_repetitions=2,
               assignment="fixed-size", as_json=True)  # fmt: skip
    capsys.readouterr()
    canaries = list(read_columns(folder / "canaries.csv", ("user", "text", "member", "reference")))
    assert Counter(member for _, _, member, _ in canaries) == {"1": 20, "0": 20}
    assert Counter(part for *_, part in canaries) == {str(number): 10 for number in (1, 2, 3, 4)}
    train = list(read_columns(folder / "train.csv", ("user", "text", "label")))
    holdout = list(read_columns(folder / "holdout.csv", ("user", "text", "label")))
    inside, outside = Counter(user for user, *_ in train), Counter(user for user, *_ in holdout)
    for user, _, member, _ in canaries:
        assert (inside[user], outside[user]) == ((2, 0) if member == "1" else (0, 2))
    beginnings = {" ".join(text.split()[:20]) for _, text, _, _ in canaries}
    assert len(beginnings) == 40
    others = [text for user, text, _ in (*train, *holdout) if not user.startswith("canary-")]
    assert not beginnings & {" ".join(text.split()[:20]) for text in others}
    assert all(label for *_, label in train)
    for number in (1, 2, 3, 4):
        seen = {user for (user,) in read_columns(folder / f"train-reference-{number}.csv", ("user",))}
        assert {user for user, _, _, part in canaries if part == str(number)} == {
            user for user in seen if user.startswith("canary-")
        }
        assert {user for user in seen if not user.startswith("canary-")} == {
            user for user in inside if not user.startswith("canary-")
        }
    assert not (folder / "synthetic.csv").exists()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"generator": "copicat"}, "copycat"),
        ({"assignment": "alphabetic"}, "known: bernoulli, fixed-size"),
        ({"generator": "rewrite", "size": 5}, "leave it out"),
        ({"size": 0}, "0 records"),
        ({"canaries": 1}, "1 canaries"),
        ({"canaries": 4, "canary_repetitions": 0}, "repetitions"),
        ({"canaries": 4, "references": 5}, "references"),
        ({"canaries": 400}, "fewer canaries"),
        ({"eps": 0.0}, "epsilon"),
        ({"data": "no-such-file.csv"}, "no such file"),
    ],
)
def test_a_mistake_ends_with_a_message_and_no_folder(change, error, tmp_path):
    with pytest.raises((StudyError, DataError), match=error):
        synthesise(tmp_path / "made", users=30, records_per_user=3, **change)
    assert list(tmp_path.iterdir()) == []
