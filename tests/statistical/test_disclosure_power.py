"""A generator that leaks at a known rate: the more it leaks, the more often it is found; at rate 0 hardly ever."""

import numpy as np
import pytest
from fakes.disclosures import records, secrets
from scipy.stats import binom

from coalmine.auditor.disclosure.assignment import Assignment, AssignmentKind, declare
from coalmine.auditor.disclosure.audit import audit_disclosures
from coalmine.auditor.disclosure.feature_match import log_p_value
from coalmine.auditor.disclosure.material import in_memory
from coalmine.auditor.disclosure.regurgitation import Regurgitation
from coalmine.auditor.disclosure.result import DisclosureVerdict
from coalmine.auditor.disclosure.settings import Settings
from coalmine.auditor.disclosure.user_match import by_mask
from coalmine.auditor.disclosure.weighted_sum import weights
from coalmine.clients.data.personas import PersonasSource, write_personas
from coalmine.server.synthesise.copycat import copycat
from coalmine.server.synthesise.corpus import Corpus

pytestmark = pytest.mark.statistical

ALPHA = 0.05


def audit(train, holdout, output, classes, seed=0):
    material = in_memory(train, holdout, output)
    assignment = declare(AssignmentKind.BERNOULLI, None, material.train)
    return audit_disclosures(material, classes, assignment, Settings(alpha=ALPHA, seed=seed, witnesses=0)).audit


def corpus(users):
    return Corpus(tuple(tuple(user) for user in users), tuple(("",) * len(user) for user in users))


@pytest.fixture(scope="module")
def people():
    """Texts of 2,000 users, and as many of others, from whom fresh texts are taken."""
    users = write_personas(PersonasSource(users=4000, records_per_user=2, seed=5)).users
    texts = [list(user.records) for user in users]
    return texts[:2000], [text for user in texts[2000:] for text in user]


def test_five_percent_of_copies_among_two_thousand_personas_are_found(people):
    texts, fresh = people
    rng = np.random.default_rng(21)
    inside = rng.random(len(texts)) < 0.5
    train = [user for user, keep in zip(texts, inside, strict=True) if keep]
    holdout = [user for user, keep in zip(texts, inside, strict=True) if not keep]
    output, copies = copycat(corpus(train), fresh[: len(train)], 0.05, rng)
    (one,) = audit(train, holdout, output.texts, [Regurgitation()]).classes
    assert 20 < len(copies) < 90
    assert one.verdict is DisclosureVerdict.LEAKS
    assert [test.name for test in one.declared] == ["feature match, k = 1", "user match"]
    assert all(test.p_holm <= ALPHA for test in one.declared)


def test_without_copies_the_same_personas_are_found_as_seldom_as_the_level_says(people):
    """Fresh texts know nobody, so users may be assigned anew to the same output, 400 times."""
    texts, fresh = people
    matches = Regurgitation().matches(in_memory(texts[:1000], texts[1000:], fresh[:1000]), (1,))[0]
    d = matches.per_user(len(texts))
    assert (d > 0).sum() > 50, "there are phantoms"
    rng, runs, rejected = np.random.default_rng(23), 400, np.zeros(2, int)
    for _ in range(runs):
        train = rng.random(len(texts)) < 0.5
        assignment = Assignment(AssignmentKind.BERNOULLI, 0.5, len(texts), int(train.sum()))
        feature = log_p_value(weights(d), int(d[train].sum()), assignment, 0.0)
        rejected += [np.exp(feature) <= ALPHA, by_mask(d > 0, train, assignment, ALPHA).p_value <= ALPHA]
    assert (rejected <= binom.isf(1e-7, runs, ALPHA)).all(), rejected


def test_power_grows_with_the_rate():
    """300 users, 150 synthetic records, 5 % of all secrets in them by chance; 40 audits at each rate."""
    rates, runs = (0.0, 0.05, 0.1, 0.2, 0.4), 40
    found = []
    for rate in rates:
        rejected = 0
        for seed in range(runs):
            rng = np.random.default_rng([22, seed])
            texts = [[text] for text in records(300, rng)]
            inside = rng.random(300) < 0.5
            train = [user for user, keep in zip(texts, inside, strict=True) if keep]
            holdout = [user for user, keep in zip(texts, inside, strict=True) if not keep]
            fresh = [text.replace("secret-", "public-") for text in records(150, rng)]
            phantoms = [f"secret-{user}" for user in np.flatnonzero(rng.random(300) < 0.05)]
            output, _ = copycat(corpus(train), fresh, rate, rng)
            (one,) = audit(train, holdout, (*output.texts, *phantoms), [secrets()]).classes
            rejected += one.verdict is DisclosureVerdict.LEAKS
        found.append(rejected)
    assert found[0] <= binom.isf(1e-7, runs, ALPHA)
    assert found == sorted(found), found
    assert 0.05 * runs < found[1] < 0.95 * runs, "the curve is seen where it rises"
    assert found[-1] == runs
