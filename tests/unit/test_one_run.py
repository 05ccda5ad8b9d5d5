import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from coalmine.auditor import gdp, one_run
from coalmine.auditor.one_run import Guesses
from coalmine.protocol.errors import StudyError


def exact_p_value(m, r, v, t, delta):
    """The note's formula in exact fractions."""
    mass = [comb(r, k) * t**k * (1 - t) ** (r - k) for k in range(r + 1)]
    alpha = max((sum(mass[v - i : v]) / i for i in range(1, v + 1)), default=Fraction(0))
    return min(1.0, float(sum(mass[v:]) + 2 * m * delta * alpha))


@pytest.mark.parametrize(("m", "r", "v"), [(10, 10, 10), (40, 25, 20), (40, 25, 0), (300, 60, 59), (7, 1, 1)])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_steinke_p_value_is_the_formula(m, r, v, delta):
    for odds in (Fraction(1), Fraction(3), Fraction(50)):
        expected = exact_p_value(m, r, v, odds / (1 + odds), Fraction(delta)) if v else 1.0
        assert one_run.steinke_p_value(Guesses(m, r, v), math.log(odds), delta) == pytest.approx(expected, rel=1e-10)


def test_steinke_p_value_for_other_inclusion_probabilities():
    p, odds = Fraction(1, 5), Fraction(4)
    expected = exact_p_value(30, 12, 9, p * odds / (p * odds + 1 - p), Fraction(0))
    assert one_run.steinke_p_value(Guesses(30, 12, 9, 0.2), math.log(4), 0.0) == pytest.approx(expected, rel=1e-10)


@given(st.integers(1, 400), st.data(), st.floats(0, 6), st.floats(0, 2), st.floats(0, 0.01))
def test_steinke_p_value_grows_with_eps(r, data, eps, more, delta):
    seen = Guesses(2 * r, r, data.draw(st.integers(0, r)))
    low, high = one_run.steinke_p_value(seen, eps, delta), one_run.steinke_p_value(seen, eps + more, delta)
    assert 0 <= low <= high * (1 + 1e-9) + 1e-15


def test_steinke_bound_lies_where_the_p_value_meets_the_level():
    seen = Guesses(1000, 400, 330)
    bound = one_run.steinke_eps_lower(seen, 1e-5, 0.05)
    assert one_run.steinke_p_value(seen, bound - 1e-9, 1e-5) < 0.05 <= one_run.steinke_p_value(seen, bound + 1e-9, 1e-5)
    assert one_run.steinke_eps_lower(Guesses(1000, 400, 210), 1e-5, 0.05) == 0


def test_all_guesses_right_still_gives_a_finite_bound():
    assert 1 < one_run.steinke_eps_lower(Guesses(1000, 1000, 1000), 0.0, 0.05) < 10
    assert 1 < one_run.gdp_mu_lower(Guesses(1000, 1000, 1000), 0.05) < 10


def binomial(n, p):
    k = np.arange(n + 1)
    return np.exp(
        [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in k]
        + k * np.log(p)
        + (n - k) * np.log1p(-p)
    )


@pytest.mark.parametrize("eps", [0.5, 2.0])
def test_steinke_is_wrong_at_most_at_its_level_and_not_much_less(eps):
    """Randomised response: every guess is right with probability e^eps / (1 + e^eps). Exact, nothing is drawn."""
    m, level = 300, 0.05
    law = binomial(m, 1 / (1 + math.exp(-eps)))
    wrong = sum(law[v] for v in range(m + 1) if one_run.steinke_p_value(Guesses(m, m, v), eps, 0.0) < level)
    assert level / 3 < wrong <= level


@pytest.mark.parametrize("mu", [0.5, 1.5])
def test_a_true_gdp_curve_is_rejected_at_most_at_the_level(mu):
    """One release of N(+-mu/2, 1) per canary, guessed by its sign. Exact, nothing is drawn."""
    m, level = 1000, 0.05
    law = binomial(m, ndtr(mu / 2))

    def share_rejected(tested):
        curve = gdp_curve(tested)
        return sum(law[v] for v in range(m + 1) if one_run.rejects_curve(Guesses(m, m, v), curve, level))

    assert share_rejected(mu) <= level
    assert share_rejected(mu / 10) > 0.9, "a curve that claims far too much is found out"


def gdp_curve(mu):
    from scipy.special import ndtri

    return lambda x: float(ndtr(ndtri(x) - mu))


def test_the_curve_of_a_privacy_profile_is_below_the_true_curve_and_near_it():
    mu = 1.0
    epsilons = np.linspace(0, 12, 2401)
    estimate = one_run.inverse_blow_up(epsilons, [gdp.delta(mu, float(eps)) for eps in epsilons])
    for x in (1e-4, 0.01, 0.1, 0.5, 0.9, 0.999, 1.0):
        truth = gdp_curve(mu)(x)
        assert truth * (1 - 1e-3) - 1e-6 <= estimate(x) <= truth * (1 + 1e-9)


def test_a_claims_own_curve_is_tested_through_its_profile():
    epsilons = np.linspace(0, 15, 601)
    seen = Guesses(2000, 600, 540)
    mu = one_run.gdp_mu_lower(seen, 0.05)

    def profile(mu):
        return one_run.inverse_blow_up(epsilons, [gdp.delta(mu, float(eps)) for eps in epsilons])

    assert mu > 0.3
    assert one_run.rejects_curve(seen, profile(0.95 * mu), 0.05)
    assert not one_run.rejects_curve(seen, profile(1.001 * mu), 0.05)


def test_what_is_not_known_is_refused():
    with pytest.raises(StudyError, match="no delta term"):
        one_run.steinke_p_value(Guesses(10, 5, 5, 0.3), 1.0, 1e-5)
    with pytest.raises(StudyError, match="1/2 only"):
        one_run.gdp_mu_lower(Guesses(10, 5, 5, 0.3), 0.05)
    for bad in ((10, 11, 5), (10, 0, 0), (10, 5, 6), (10, 5, -1), (10, 5, 5, 0.0), (10, 5, 5, 1.0)):
        with pytest.raises(StudyError, match="needs"):
            Guesses(*bad)
    for eps, delta in ((-1.0, 0.0), (math.nan, 0.0), (1.0, 1.0), (1.0, -1e-9)):
        with pytest.raises(StudyError, match="needs"):
            one_run.steinke_p_value(Guesses(10, 5, 5), eps, delta)
    for level in (0.0, 1.0):
        with pytest.raises(StudyError, match="needs"):
            one_run.steinke_eps_lower(Guesses(10, 5, 5), 0.0, level)
