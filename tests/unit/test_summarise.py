"""From canaries to a verdict, and from replays to one p-value."""

from dataclasses import replace

import pytest
from fakes.audits import CLAIM, round_audit

from coalmine.auditor.result import Replay
from coalmine.auditor.summarise import attack_audit, replay_p_value, verdict
from coalmine.protocol.finding import Evidence, Verdict
from coalmine.protocol.privacy import Assurance

BOUND = CLAIM.eps_pld_upper


def shown(eps, assurance=Assurance.FORMAL, method="m"):
    return Evidence(method, assurance, eps)


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ([], Verdict.CONSISTENT),
        ([shown(BOUND)], Verdict.CONSISTENT),
        ([shown(BOUND + 1e-9)], Verdict.CONTRADICTED),
        ([shown(BOUND + 1e-9, Assurance.EXACT)], Verdict.CONTRADICTED),
        ([shown(9.0, Assurance.HEURISTIC)], Verdict.CONSISTENT),
        ([shown(9.0, Assurance.HEURISTIC), shown(0.1), shown(BOUND + 1)], Verdict.CONTRADICTED),
        ([shown(float("inf"))], Verdict.CONTRADICTED),
    ],
)
def test_only_what_proves_something_contradicts_a_claim(evidence, expected):
    assert verdict(CLAIM, evidence) is expected


def canaries(*columns):
    """One canary per column of (monte carlo, variance reduced, exact)."""
    base = round_audit(("ordinary",), canaries=1).attacks[0].canaries[0]
    return [
        replace(
            base,
            canary=number,
            monte_carlo=shown(a, method="monte carlo"),
            variance_reduced=shown(b, method="reduced"),
            exact=shown(c, Assurance.EXACT, "exact"),
        )
        for number, (a, b, c) in enumerate(columns, 1)
    ]


def test_an_attack_is_worth_its_best_canary_by_method():
    found = attack_audit("exact", CLAIM, canaries((0.1, 0.9, 0.3), (0.4, 0.2, 0.5), (0.2, 0.3, 1.0)))
    assert [(e.method, e.eps_lower) for e in found.finding.evidence] == [
        ("monte carlo", 0.4),
        ("reduced", 0.9),
        ("exact", 1.0),
    ]
    assert (found.name, found.finding.claim, found.finding.verdict) == ("exact", CLAIM, Verdict.CONSISTENT)
    assert found.strongest.canary == 3
    assert [canary.canary for canary in found.canaries] == [1, 2, 3]


def test_one_canary_is_enough_to_contradict():
    found = attack_audit("exact", CLAIM, canaries((0.1, 0.1, 0.1), (0.1, BOUND + 0.1, 0.2)))
    assert found.finding.verdict is Verdict.CONTRADICTED


def replayed(*pairs):
    return [
        replace(canary, replay=None if pair is None else Replay(64, *pair, 0.0))
        for canary, pair in zip(canaries(*[(0.0, 0.0, 0.0)] * len(pairs)), pairs, strict=True)
    ]


def test_replays_are_corrected_for_their_number():
    one = attack_audit("a", CLAIM, replayed((0.5, 0.02), None))
    other = attack_audit("b", CLAIM, replayed((0.9, 0.4), (0.3, 0.7)))
    assert replay_p_value([one]) == pytest.approx(2 * 0.02)
    assert replay_p_value([one, other]) == pytest.approx(6 * 0.02)
    assert replay_p_value([other]) == 1.0
    assert replay_p_value([attack_audit("c", CLAIM, replayed(None))]) is None
    assert replay_p_value([]) is None
