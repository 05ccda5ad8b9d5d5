"""What an audit needs of its study, refused before a worker is started."""

from __future__ import annotations

from coalmine.clients.training.models import Kind
from coalmine.deploy.training.prepare import Prepared
from coalmine.protocol.dpsgd.terms import Mode
from coalmine.protocol.errors import StudyError

COLOURED = "coloured-digits"
NEED_PUBLIC = ("fgsm", "clipbkd", "defence_aware")


def auditable(ready: Prepared) -> None:
    """Refuse a study that the audit could not finish.

    Raises:
        StudyError: another mode than gradient; an attack without the data, the network or the filter that it needs.
    """
    section = ready.section.audit
    if ready.agreed.mode is not Mode.GRADIENT:
        raise StudyError(
            "shadow models train in gradient mode", where="training.mode", remedy="audit the gradient mode"
        )
    for name in section.canaries:
        if name in NEED_PUBLIC and len(ready.data.public) < 2:
            raise StudyError(
                f"{name} needs a public reference model", where="training.data.public", remedy="set it above 1"
            )
    if "defence_aware" in section.canaries and ready.agreed.filter is None:
        raise StudyError(
            "defence_aware evades a filter, and there is none",
            where="training.audit.canaries",
            remedy="add training.filter",
        )
    if section.white_box and ready.spec.kind not in (Kind.LOGISTIC, Kind.MLP):
        raise StudyError(
            f"a {ready.spec.kind} has no weight that nobody's gradient touches",
            where="training.audit.white_box",
            remedy="set training.model.kind to mlp or logistic",
        )
    if section.label_only is not None:
        _stays_in_view(section.label_only.shift, ready.data.train.shape)
    if section.disparate is not None:
        _has_subgroups(ready)


def _stays_in_view(shift: int, shape: tuple[int, ...]) -> None:
    if len(shape) == 3 and shift >= min(shape[1:]):
        raise StudyError(
            f"images of {shape[1]} x {shape[2]} are moved out of sight by {shift} pixels",
            where="training.audit.label_only.shift",
            remedy=f"needs at most {min(shape[1:]) - 1}",
        )


def unmodelled(ready: Prepared) -> tuple[str, ...]:
    """What the study says and shadow models leave out."""
    if ready.conditions.ideal:
        return ()
    return (
        "The study's population is not modelled: shadow models hear every client in every round. So the canary is never"
        " away, which is the most that the claim covers; the bounds are about that training, and the model of"
        " `coalmine train` may show less, or more where others are away and no longer hide it.",
    )


def _has_subgroups(ready: Prepared) -> None:
    asked, where = ready.section.audit.disparate, "training.audit.disparate"
    assert asked is not None
    if ready.agreed.filter is None:
        raise StudyError("there is no filter whose impact could be seen", where=where, remedy="add training.filter")
    if asked.minority and ready.section.data.source != COLOURED:
        raise StudyError(
            "shares of a minority are for coloured digits",
            where=f"{where}.minority",
            remedy=f"leave it out, or set training.data.source to {COLOURED}",
        )
    if ready.data.train.group is None or ready.data.test.group is None:
        raise StudyError(
            "these samples have no subgroups",
            where=where,
            remedy=f"give them a column group, or set training.data.source to {COLOURED}",
        )
