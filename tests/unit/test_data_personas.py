"""Generated people."""

import pytest

from coalmine.clients.data.load import load
from coalmine.clients.data.persona_words import CLAUSES, TOPICS
from coalmine.clients.data.personas import _PER_CLAUSE, _SLOT, PersonasSource, persona, write_personas
from coalmine.protocol.errors import DataError

POPULATION = write_personas(PersonasSource(400, 32, seed=5))


def test_a_person_depends_on_seed_and_index_alone():
    assert write_personas(PersonasSource(20, 32, seed=5)).users == POPULATION.users[:20]
    assert load(PersonasSource(3, 32, seed=5)).users == POPULATION.users[:3]


def test_more_records_never_change_the_first_ones():
    longer = write_personas(PersonasSource(5, 200, seed=5)).users
    assert [user.records[:32] for user in longer] == [user.records for user in POPULATION.users[:5]]


def test_another_seed_gives_other_people():
    other = write_personas(PersonasSource(400, 32, seed=6))
    assert other.digest != POPULATION.digest
    shared = {text for user in other.users for text in user.records} & {
        text for user in POPULATION.users for text in user.records
    }
    assert len(shared) < 100


def test_texts_differ_within_and_nearly_always_across_users():
    assert all(len(user.records) == len(set(user.records)) == 32 for user in POPULATION.users)
    texts = [text for user in POPULATION.users for text in user.records]
    assert len(set(texts)) > 0.99 * len(texts)


def test_a_persona_has_a_thousand_things_to_say():
    for user in write_personas(PersonasSource(8, 1000)).users:
        assert len(user.records) == len(set(user.records)) == 1000


def test_labels_are_communities_and_all_occur():
    assert {label for user in POPULATION.users for label in user.labels} == set(TOPICS)
    assert all(len(set(user.labels)) == 1 for user in POPULATION.users)


def test_style_shows_in_the_texts():
    for index, user in enumerate(POPULATION.users):
        person = persona(5, index)
        assert (person.id, person.topic) == (user.id, user.labels[0])
        if not person.style.emoji:
            assert all(text.isascii() or "é" in text for text in user.records)
        own = [text for text in user.records if not any(value in text for value in person.details.values())]
        if person.style.lower:
            assert all(text == text.lower() for text in own)
        else:
            assert all(text[0] == text[0].upper() for text in user.records)


def test_personal_details_are_mentioned_sometimes_and_are_fictitious():
    mentioned = dict.fromkeys(persona(5, 0).details, 0)
    talkers = 0
    for index, user in enumerate(POPULATION.users):
        details = persona(5, index).details
        told = {kind for kind, value in details.items() if any(value in text for text in user.records)}
        talkers += bool(told)
        for kind in told:
            mentioned[kind] += 1
        assert details["email"].partition("@")[2] in ("example.org", "example.com", "example.net")
        assert " 555-01" in details["phone"]
    assert all(mentioned.values()), mentioned
    assert 0.5 < talkers / len(POPULATION.users) <= 1.0


def test_people_are_told_apart_by_their_addresses():
    emails = [persona(5, index).details["email"] for index in range(400)]
    assert len(set(emails)) > 390


def test_every_slot_of_a_template_has_its_draw():
    assert max(len(_SLOT.findall(template)) for template in CLAUSES) < _PER_CLAUSE


@pytest.mark.parametrize(
    ("users", "records", "told"), [(0, 32, "users"), (1, 0, "records_per_user"), (1, 1001, "1 to 1000")]
)
def test_numbers_out_of_range(users, records, told):
    with pytest.raises(DataError, match=told):
        PersonasSource(users, records)
