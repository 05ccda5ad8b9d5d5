"""Who pays for the filter: dropped samples and accuracy by subgroup, for several shares of the minority."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coalmine.auditor.membership.disparate import Disparity, impact
from coalmine.clients.training.fast.shadows import Asked
from coalmine.clients.training.order import source
from coalmine.clients.training.source import samples
from coalmine.deploy.study_training import DisparateSection
from coalmine.deploy.training.experiment import Experiment
from coalmine.deploy.training.prepare import start_of


def disparate_audit(run: Experiment, section: DisparateSection) -> tuple[Disparity, ...]:
    """Models of the same plan with and without its filter, on each share of the minority or on the study's own data."""
    found = []
    for share in section.minority or (None,):
        own = run if share is None else _with_minority(run, share)
        common, seeds = own.common((), Asked(each=True)), own.seeds(0, section.models, "disparate")
        nobody = np.zeros((section.models, 0), np.bool_)
        filtered = own.train(common, own.plan, nobody, seeds)
        unfiltered = own.train(common, replace(own.plan, filter=None), nobody, seeds)
        train, test = own.ready.data.train, own.ready.data.test
        assert train.group is not None
        assert test.group is not None
        seen = impact(filtered.gone, train.y, train.group, filtered.right, unfiltered.right, test.group)
        found.append(Disparity(share, seen, section.models))
    return tuple(found)


def _with_minority(run: Experiment, share: float) -> Experiment:
    ready = replace(run.ready, data=samples(source({**run.ready.settings, "data.minority": share})))
    return replace(run, ready=ready, start=start_of(ready, run.seed))
