"""Is what a round would release safe? The disclosure audit of every round's synthetic texts.

Which of the people became voting users and which calibration users was drawn at random from the study's seed, so the
assignment is one of fixed size, and its tests are exact.
"""

from __future__ import annotations

from coalmine.auditor.disclosure.assignment import AssignmentKind
from coalmine.auditor.disclosure.audit import Audited
from coalmine.auditor.disclosure.settings import Settings
from coalmine.deploy.campaign import Campaign
from coalmine.deploy.disclosure.classes import feature_classes
from coalmine.deploy.disclosure.run import audit_output


def disclosures(campaign: Campaign) -> tuple[Audited, ...]:
    """One audit for each round: voting users on the training side, calibration users on the held-out side.

    Raises:
        CoalmineError: a class whose library is missing, or too few texts for it.
    """
    study, splits = campaign.study, campaign.crowd.splits
    section = study.disclosures
    classes = feature_classes(section.classes, campaign.workshop.encoder)
    settings = Settings(alpha=section.alpha, seed=study.seed)
    found = []
    with campaign.workshop.stages.stage("disclosures", len(campaign.steps), "rounds") as advance:
        for number, step in enumerate(campaign.steps, 1):
            audited = audit_output(
                [user.records for user in splits.test],
                [user.records for user in splits.calibration],
                step.texts,
                classes,
                AssignmentKind.FIXED_SIZE,
                settings=settings,
                name=f"{study.study} round {number}",
            )
            found.append(audited)
            advance(1)
    return tuple(found)
