"""The grid that looks for answers often: all of them come, late ones too, and a time limit is kept."""

import pytest
from flwr.app import Message, RecordDict

from coalmine.deploy.training.federation import server_identity
from coalmine.server.training import attentive
from coalmine.server.training.attentive import AttentiveGrid


class Late:
    """Answers message i when it has been asked for answers i times; counts seconds only while somebody sleeps."""

    def __init__(self):
        self.looks, self.now, self.pauses, self.sent = 0, 0.0, [], {}

    def push_messages(self, messages):
        for number, message in enumerate(messages, 1):
            message.metadata.__dict__["_message_id"] = f"m{number}"
            self.sent[f"m{number}"] = message
        return list(self.sent)

    def pull_messages(self, names):
        assert names, "asks only for what has not come"
        self.looks += 1
        return [
            Message(RecordDict(), reply_to=self.sent[name]) for name in sorted(names) if int(name[1:]) <= self.looks
        ]

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds

    def monotonic(self):
        return self.now


@pytest.fixture
def late(monkeypatch):
    made = Late()
    monkeypatch.setattr(attentive, "time", made)
    with server_identity():
        yield made


def messages(count):
    return [Message(RecordDict(), dst_node_id=node, message_type="train") for node in range(count)]


def test_every_answer_comes_once_however_late(late):
    found = AttentiveGrid(late).send_and_receive(messages(5))
    assert [reply.metadata.reply_to_message_id for reply in found] == ["m1", "m2", "m3", "m4", "m5"]


def test_it_looks_soon_then_less_and_less_often(late):
    AttentiveGrid(late).send_and_receive(messages(400))
    assert late.pauses[0] < 0.01
    assert late.pauses == sorted(late.pauses)
    assert 0.5 < late.pauses[-1] <= 1.0


def test_who_is_silent_beyond_the_limit_is_missing(late):
    found = AttentiveGrid(late).send_and_receive(messages(10**4), timeout=5.0)
    assert 0 < len(found) < 10**4
    assert late.now < 7


def test_nobody_asked_is_nobody_waited_for(late):
    assert AttentiveGrid(late).send_and_receive([]) == []
    assert not late.pauses
