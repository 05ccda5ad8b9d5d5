"""The page and the figures of a training audit."""

import re
from dataclasses import replace

import numpy as np
import pytest
from fakes.membership import everything, membership, one_study, swept

from coalmine.auditor.membership.disparate import Disparity, impact
from coalmine.auditor.membership.report import publish as publishing
from coalmine.auditor.membership.report.page import render
from coalmine.auditor.membership.report.privacy_figures import formal, headline
from coalmine.auditor.membership.report.views import GRADIENT_CANARY, View, attacks_see, qualifiers, view
from coalmine.auditor.membership.report.wording import fallen, left, white_box
from coalmine.auditor.membership.result import Audited, Subject
from coalmine.auditor.membership.runs import audited_records, audited_runs
from coalmine.auditor.membership.suite import finding
from coalmine.auditor.report.style import svg
from coalmine.deploy.training import white_box as deployed
from coalmine.protocol.finding import Evidence
from coalmine.protocol.privacy import Assurance


def test_the_folder_holds_the_page_and_its_figures(tmp_path):
    page = publishing.publish(one_study(), tmp_path)
    assert page.read_text().count("<figure>") == len(publishing.FIGURES)
    assert {path.stem for path in (tmp_path / "figures").glob("*.png")} == set(publishing.FIGURES)


def test_the_page_is_one_file_and_says_where_the_filter_fails():
    page = render(one_study(), {name: svg(draw(one_study())) for name, draw in publishing.FIGURES.items()})
    assert not re.search(r"""(src|href)="(?!#)|<script|@import|url\((?!#)""", page)
    for words in (
        "What the filter leaves",
        "group of 9 in gradient space",
        "formal",
        "heuristic",
        "add/remove",
        "record",
    ):
        assert words in page, words
    assert "THE CLAIM" not in page


def test_a_group_that_keeps_its_leak_is_named_and_a_canary_that_loses_it_is_not():
    told, *_ = left(everything())
    assert told.startswith("group of 9 in gradient space")
    assert "within a factor of two" in told
    (good,) = fallen(everything())
    assert good.startswith("mislabeled")


def read(audit, before, after):
    """The audit with these GDP readings of its first canary, without and with the filter."""
    arms = []
    for arm, eps in zip(audit.arms, (before, after), strict=True):
        (found,) = arm.subjects[0].findings
        evidence = tuple(replace(one, eps_lower=eps) if one.method == "gdp" else one for one in found.evidence)
        subject = replace(arm.subjects[0], findings=(replace(found, evidence=evidence),))
        arms.append(replace(arm, subjects=(subject,)))
    return replace(audit, arms=tuple(arms))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (5.0, 4.44, "within a factor of two"),
        (4.44, 5.0, "within a factor of two"),
        (2.0, 5.0, "higher with the filter"),
    ],
)
def test_a_reading_that_stays_is_told_as_it_was_seen_and_gets_no_verdict(before, after, said):
    audit = read(membership(repetitions=1), before, after)
    told = left(audit)[0]
    assert f"{before:.2f} without the filter and {after:.2f} with it" in told
    assert said in told
    assert "help" not in told
    assert not fallen(audit)
    drawings = {"epsilons": "<svg viewBox='0 0 1 1'></svg>", "accuracy": "<svg></svg>"}
    page = render(Audited("made-up", (), (({}, read(membership(repetitions=1), 5.0, 1.0)),)), drawings)
    assert "Readings that fall with the filter: mislabeled" in page
    assert "The filter helps" not in page


def gradient(scale, after):
    """A white-box audit: score's epsilon 7.85 without the filter, ``after`` with it on a canary of clip / scale."""
    audit = membership(repetitions=1)
    arms = []
    for arm, eps, length in zip(audit.arms, (7.85, after), (1.0, scale), strict=True):
        trial = Evidence("gdp", Assurance.HEURISTIC, 3.86)
        exact = Evidence("white_box/score", Assurance.EXACT, eps or 0.0, 0.95, 0.1, {"clip_over_length": length or 1.0})
        evidence = (trial,) if length is None else (exact, trial)
        subject = Subject(GRADIENT_CANARY, (finding(GRADIENT_CANARY, audit.claim, evidence),), 0.0)
        arms.append(replace(arm, subjects=(subject,)))
    return replace(audit, arms=tuple(arms))


@pytest.mark.parametrize(
    ("scale", "after", "said", "unsaid"),
    [
        (1.0, 7.85, "as long as without it, the whole clip; its numbers are not smaller", "part of why"),
        (1.0, 7.80, "as long as without it, the whole clip; its numbers are smaller", "part of why"),
        (2.0, 3.10, "only 0.5 of the clip long, which is part of why its numbers are smaller", "not smaller"),
        (2.0, 7.85, "only 0.5 of the clip long, yet its numbers are not smaller", "part of why"),
        (None, None, "was taken in some models: no exact epsilon is told, and its numbers are not smaller", "part of"),
    ],
)
def test_the_gradient_canary_is_called_shorter_and_its_numbers_smaller_only_where_they_are(scale, after, said, unsaid):
    (told,) = white_box(gradient(scale, after))
    assert said in told
    assert unsaid not in told


def test_the_claims_attacker_and_the_attacks_view_are_told_apart():
    assert qualifiers(membership()).endswith(
        "claim holds against: every noised update · the attack sees: the final model"
    )
    both = attacks_see(everything())
    assert both.startswith("the attacks see, each its own: the final model; one parameter of the final model")
    assert attacks_see(gradient(1.0, 7.85)) == "the attack sees: every noised update"
    assert attacks_see(replace(membership(), arms=())) == ""
    assert view(deployed._NAME) is View.EVERY_UPDATE, "the name that the audit gives its white-box attack"
    page = render(one_study(), {name: svg(draw(one_study())) for name, draw in publishing.FIGURES.items()})
    assert "claim holds against: every noised update" in page
    assert "attacker sees: every" not in page


def test_without_a_group_the_page_says_that_none_was_tried():
    assert "were not tried" in left(membership())[-1]


def test_a_formal_bound_above_the_claim_is_said_aloud():
    page = render(one_study(9.0), {"epsilons": "<svg viewBox='0 0 1 1'></svg>", "accuracy": "<svg></svg>"})
    assert "THE CLAIM IS CONTRADICTED by mislabeled" in page
    assert 'role="alert"' in page
    assert "broken mechanism" in everything(9.0).alarm
    assert everything().alarm is None


@pytest.mark.parametrize("found", [one_study(), swept()], ids=["one", "sweep"])
def test_runs_have_names_that_mlflow_takes(found):
    runs = audited_runs(found)
    for run in runs:
        for name in (*run.metrics, *run.tags, *run.params):
            assert re.fullmatch(r"[\w\-. :/]+", name), name
    whole = runs[0 if not found.keys else 1]
    assert whole.metrics["tpr/0.01/HAMP"] == found.points[0][1].label_only[1].rates[1].tpr
    assert whole.tags["assurance/tpr"] == "heuristic"
    assert "utility/accuracy/with filter/group 1/minority 0.25" in whole.metrics
    assert len(audited_records(found)) == len(found.points) * 4 * 6


def test_a_sweep_is_one_page_and_its_runs_are_a_tree():
    found = swept()
    page = render(found, {name: svg(draw(found)) for name, draw in publishing.FIGURES.items()})
    assert "training.eps = 2.0" in page
    runs = audited_runs(found)
    assert [run.parent for run in runs] == [None, None, 1, 1, 1, 1, None, 6, 6, 6, 6]
    assert runs[6].params["sweep.training.eps"] == "2.0"


def over(key, values, **changes):
    """One claim at every point."""
    points = tuple(({key: value}, replace(everything(), **changes)) for value in values)
    return Audited("ablation", (key,), points)


def test_a_sweep_under_one_claim_shows_bounds_and_accuracy_over_what_was_swept():
    figure = publishing.FIGURES["epsilons"](over("training.filter.k", [5, 1, 3]))
    proved, read, accuracy = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "formal", "heuristic: GDP reading", "accuracy on public test samples",
    ]  # fmt: skip
    for axes, value in ((proved, formal), (read, headline)):
        drawn = {str(line.get_label()): line for line in axes.get_lines()}
        for arm in everything().arms:
            for subject in arm.subjects:
                line = drawn[f"{subject.name}, {arm.name}"]
                assert list(line.get_xdata()) == [1, 3, 5]
                assert list(line.get_ydata()) == [value(subject)] * 3
    evidence = everything().arms[0].subjects[0].findings[0].evidence
    ceiling = next(one.details["ceiling"] for one in evidence if one.method == "clopper_pearson_bonferroni")
    drawn = {str(line.get_label()): line for line in proved.get_lines()}
    assert list(drawn["most that so many models can show"].get_ydata()) == [ceiling] * 3
    assert [text.get_text() for text in accuracy.get_xticklabels()] == ["1", "3", "5"]


def test_a_claim_above_the_axis_is_told_and_words_keep_the_order_of_the_file():
    found = over("training.filter.signature", ["loss", "grad_l2"])
    near = publishing.FIGURES["epsilons"](found)
    assert [label.get_text() for label in near.axes[0].get_xticklabels()] == ["loss", "grad_l2"]
    assert near.axes[0].get_lines()[0].get_linestyle() == "None", "words have no order that a line could follow"
    high = replace(everything().claim, eps_pld_upper=99.0)
    far = publishing.FIGURES["epsilons"](over("training.filter.signature", ["loss", "grad_l2"], claim=high))
    assert "claim 99.00: above" in [text.get_text() for text in far.axes[0].texts]


def test_points_with_other_numbers_of_models_say_all_of_them():
    points = (({"training.audit.models": n}, replace(everything(), models=n)) for n in (40, 20))
    figure = publishing.FIGURES["epsilons"](Audited("s", ("training.audit.models",), tuple(points)))
    assert any("20 or 40 models a side" in text.get_text() for text in figure.texts)


@pytest.mark.parametrize("found", [one_study(), swept(), over("k", [1, 2])], ids=["rows", "claims", "values"])
def test_what_the_figure_says_of_both_views_fits_its_width(found):
    figure = publishing.FIGURES["epsilons"](found)
    figure.draw_without_rendering()
    told = [text for text in figure.texts if "claim holds against" in text.get_text() or "see" in text.get_text()]
    assert len(told) == 2
    for text in told:
        assert text.get_window_extent().x1 <= figure.bbox.x1, text.get_text()


def test_a_minority_that_pays_is_named():
    flags, group = np.tile(np.arange(20) % 2 == 1, (3, 1)), np.arange(20) % 2
    seen = impact(flags, group, group, ~flags, np.ones_like(flags), group)
    audit = replace(membership(), arms=(), disparate=(Disparity(0.05, seen, 3),))
    told = left(audit)[0]
    assert told.startswith("group 1 (minority 5 %): the filter drops 100 % of its samples, against 0 % elsewhere")
    assert told.endswith("from 1.000 to 0.000.")
    assert publishing.FIGURES["epsilons"](Audited("made-up", (), (({}, audit),))) is None
