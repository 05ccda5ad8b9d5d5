"""Privacy and utility over rounds: every line is there, with the values it says."""

from dataclasses import replace

import numpy as np
import pytest

from coalmine.auditor.report.rounds_figure import privacy_and_utility
from coalmine.auditor.report.style import png, svg
from coalmine.auditor.result import TradeOff
from coalmine.auditor.rounds.result import PathAudit, PrefixAudit
from coalmine.auditor.rounds.study import RoundsAudit
from coalmine.auditor.utility.result import References, Repeated, RoundUtility
from coalmine.auditor.waterfall import Waterfall
from coalmine.protocol.finding import Evidence
from coalmine.protocol.privacy import Adjacency, Assurance, Claim, Mechanism, PrivacyUnit, ThreatModel

CLAIMED = (1.3, 1.5, 1.65)
CURVE = TradeOff((0.0, 1.0), (0.0, 1.0), (), (), (), (), 1.0, (0.0, 0.0))


def path(attack, canary, share):
    def evidence(eps, assurance):
        return Evidence("method", assurance, eps)

    prefixes = tuple(
        PrefixAudit(
            rounds=number,
            threshold=0.0,
            tpr=0.1,
            fpr=0.01,
            monte_carlo=evidence(0.5 * share * eps, Assurance.FORMAL),
            variance_reduced=evidence(0.6 * share * eps, Assurance.FORMAL),
            exact=evidence(share * eps, Assurance.EXACT),
            exact_elsewhere={},
            waterfall=Waterfall(()),
            trade_off=CURVE,
        )
        for number, eps in enumerate(CLAIMED, 1)
    )
    return PathAudit(attack, canary, "probes", (8,) * 3, (0.1,) * 3, (0.1,) * 3, (1.0,) * 3, prefixes)


def audit(utility=(), attacks=("ordinary", "nonce-mu")):
    stated = Adjacency.ADD_REMOVE, PrivacyUnit.USER, ThreatModel.RELEASE_ONLY
    return RoundsAudit(
        study="s",
        mechanism=Mechanism(),
        claims=tuple(Claim(eps + 0.01, eps, eps, 1e-5, 0.1, 1.1, n, *stated) for n, eps in enumerate(CLAIMED, 1)),
        eligible=100,
        randomness="simulated",
        bank_digests=("a",) * 3,
        dataset_digest="d",
        alpha=0.05,
        trials=1000,
        paths={name: (path(name, 1, 0.5), path(name, 2, 0.9)) for name in attacks},
        utility=utility,
    )


REFERENCES = References(100, 10, Repeated((0.9, 0.92)), Repeated((0.2, 0.2)), Repeated((0.8,)), Repeated((0.5,)), 0.3)
UTILITY = tuple(
    RoundUtility(number, Repeated((0.2 * number, 0.2 * number + 0.1)), Repeated((0.5 + 0.05 * number,)), REFERENCES)
    for number in (1, 2, 3)
)
NO_LABELS = replace(REFERENCES, accuracy_real=None, accuracy_floor=None, majority=None)


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_privacy_is_drawn_after_every_round():
    figure = privacy_and_utility(audit())
    (axes,) = figure.axes
    drawn = lines(axes)
    assert set(drawn) == {"claim (PLD, upper)", "claim (PRV)", "ordinary", "nonce-mu"}
    np.testing.assert_allclose(drawn["claim (PLD, upper)"].get_ydata(), CLAIMED)
    np.testing.assert_allclose(drawn["nonce-mu"].get_ydata(), 0.9 * np.array(CLAIMED))  # the stronger canary
    dotted = [line for line in axes.get_lines() if line.get_linestyle() == ":"]
    np.testing.assert_allclose([line.get_ydata() for line in dotted], [0.45 * np.array(CLAIMED)] * 2)


@pytest.mark.parametrize("labelled", [True, False])
def test_utility_is_drawn_beside_its_floors_and_ceilings(labelled):
    utility = UTILITY
    if not labelled:
        utility = tuple(replace(one, accuracy=None, references=NO_LABELS) for one in UTILITY)
    figure = privacy_and_utility(audit(utility))
    assert len(figure.axes) == 2 + labelled
    mauve = lines(figure.axes[1])
    assert [line.get_ydata()[0] for line in mauve.values()] == pytest.approx([0.91, 0.2])
    (bars,) = figure.axes[1].containers
    assert list(bars.lines[0].get_ydata()) == pytest.approx([0.25, 0.45, 0.65])
    if labelled:
        assert [line.get_ydata()[0] for line in lines(figure.axes[2]).values()] == pytest.approx([0.8, 0.5, 0.3])


def test_it_can_be_saved_and_repeats_itself():
    many = [f"attack {number}" for number in range(8)]
    assert svg(privacy_and_utility(audit(UTILITY, many))) == svg(privacy_and_utility(audit(UTILITY, many)))
    assert png(privacy_and_utility(audit(UTILITY, many)), 60).startswith(b"\x89PNG")
