"""How good each round's synthetic texts are, in the eyes of public users."""

from __future__ import annotations

from collections.abc import Sequence

from coalmine.auditor.utility.downstream import Labelled
from coalmine.auditor.utility.measure import yardstick
from coalmine.auditor.utility.result import RoundUtility
from coalmine.clients.data.users import User
from coalmine.deploy.campaign import Campaign
from coalmine.protocol.ports import Encoder


def utility(campaign: Campaign) -> tuple[RoundUtility, ...]:
    """Round by round: calibration users are the real training texts, auxiliary users the held-out ones. Test users have
    no part in it, because what is measured is published.

    Raises:
        DataError: too few texts to compare.
    """
    study, encoder, stages = campaign.study, campaign.workshop.encoder, campaign.workshop.stages
    splits, first = campaign.crowd.splits, campaign.steps[0].bank
    measured = []
    with stages.stage("utility", len(campaign.steps) + 1, "comparisons") as advance:
        measure = yardstick(
            _real(splits.calibration, encoder),
            _real(splits.aux, encoder),
            Labelled(encoder.encode(first.texts), first.labels),
            study.rounds.output,
            study.seed,
            study.utility.repeats,
        ).measure
        advance(1)
        for number, step in enumerate(campaign.steps, 1):
            measured.append(measure(number, Labelled(encoder.encode(step.texts), step.labels)))
            advance(1)
    return tuple(measured)


def _real(users: Sequence[User], encoder: Encoder) -> Labelled:
    records = [record for user in users for record in user.records]
    labels = tuple(label for user in users for label in user.labels)
    return Labelled(encoder.encode(records), labels)
