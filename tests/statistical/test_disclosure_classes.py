"""Feature classes treat train and holdout alike: what was copied from both is found on both sides in equal shares, and
what was copied from train is found there.

Given everything but the split, each of 600 copied users is in train with probability 1/2, independently. Bounds are
five standard deviations, beyond which a normal law has 5.8e-7, and six for the permutation scores; one class has one
bound.
"""

import numpy as np
import pytest
from fakes.material import Held

from coalmine.auditor.disclosure.counted import Counted
from coalmine.auditor.disclosure.pii import Pii
from coalmine.auditor.disclosure.pii_detector import Detail
from coalmine.auditor.disclosure.regurgitation import Regurgitation
from coalmine.auditor.disclosure.semantic import Semantic
from coalmine.clients.encoder.fake import HashEncoder

pytestmark = pytest.mark.statistical
USERS, COPIED, WORDS = 2000, 600, 15


class Split(Held):
    """Train is whom a fair coin put there."""

    @property
    def train(self):
        return np.random.default_rng(11).random(USERS) < 0.5


class Codes:
    """Takes the first word for a name."""

    notes = ()

    def detect(self, texts):
        return [(Detail("PERSON", 0, len(text.split()[0])),) for text in texts]


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(5)
    return [f"u{user} " + " ".join(f"w{i}" for i in rng.integers(0, 3000, WORDS)) for user in range(USERS)]


def material(texts, from_train):
    """Each user has two records; the synthetic output copies the first one of some users, in a frame of its own."""
    rng = np.random.default_rng(7)
    records = [*enumerate(texts), *((user, f"other{user} matter") for user in rng.permutation(USERS).tolist())]
    split = Split(records, [])
    copied = rng.choice(np.flatnonzero(split.train) if from_train else USERS, COPIED, replace=False)
    return Split(records, [f"{texts[user]} end" for user in copied])


CLASSES = [Regurgitation(), Counted("first words", lambda text: text.split()[:1]), Pii(Codes())]


@pytest.mark.parametrize("of_class", CLASSES, ids=lambda of_class: of_class.name)
def test_discrete_features_are_found_where_they_were_copied(texts, of_class):
    for from_train in (False, True):
        audited = material(texts, from_train)
        (matches,) = of_class.matches(audited, [1])
        holders = np.flatnonzero(matches.per_user(USERS))
        assert len(holders) == COPIED
        excess = (audited.train[holders].sum() - COPIED / 2) / np.sqrt(COPIED / 4)
        assert excess > 20 if from_train else abs(excess) < 5


def test_closeness_differs_only_where_train_was_copied(texts):
    for from_train in (False, True):
        audited = material(texts, from_train)
        found = Semantic(HashEncoder(64)).similarities(audited)
        train = audited.train
        closeness, rarity = excess(found.nearest[:, 0], train), excess(found.rarity, train)
        assert closeness > 10 if from_train else abs(closeness) < 6
        assert abs(rarity) < 6


def excess(values, train):
    """Of the mean in train over the mean of all, in standard deviations of a random subset of that size."""
    n, m = train.sum(), (~train).sum()
    return (values[train].mean() - values.mean()) / (values.std(ddof=1) * np.sqrt(m / (n * (n + m))))
