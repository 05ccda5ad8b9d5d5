"""Privacy and utility over rounds: every line is there, with the values it says."""

from dataclasses import replace

import numpy as np
import pytest
from fakes.rounds import CLAIMED, NO_LABELS, UTILITY, rounds_audit

from coalmine.auditor.report.rounds_figure import privacy_and_utility
from coalmine.auditor.report.style import png, svg


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_privacy_is_drawn_after_every_round():
    figure = privacy_and_utility(rounds_audit())
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
    figure = privacy_and_utility(rounds_audit(utility))
    assert len(figure.axes) == 2 + labelled
    mauve = lines(figure.axes[1])
    assert [line.get_ydata()[0] for line in mauve.values()] == pytest.approx([0.91, 0.2])
    (bars,) = figure.axes[1].containers
    assert list(bars.lines[0].get_ydata()) == pytest.approx([0.25, 0.45, 0.65])
    if labelled:
        assert [line.get_ydata()[0] for line in lines(figure.axes[2]).values()] == pytest.approx([0.8, 0.5, 0.3])


def test_it_can_be_saved_and_repeats_itself():
    many = [f"attack {number}" for number in range(8)]
    assert svg(privacy_and_utility(rounds_audit(UTILITY, many))) == svg(
        privacy_and_utility(rounds_audit(UTILITY, many))
    )
    assert png(privacy_and_utility(rounds_audit(UTILITY, many)), 60).startswith(b"\x89PNG")
