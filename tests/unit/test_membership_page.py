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
from coalmine.auditor.membership.report.wording import failures, helped
from coalmine.auditor.membership.result import Audited
from coalmine.auditor.membership.runs import audited_records, audited_runs
from coalmine.auditor.report.style import svg


def test_the_folder_holds_the_page_and_its_figures(tmp_path):
    page = publishing.publish(one_study(), tmp_path)
    assert page.read_text().count("<figure>") == len(publishing.FIGURES)
    assert {path.stem for path in (tmp_path / "figures").glob("*.png")} == set(publishing.FIGURES)


def test_the_page_is_one_file_and_says_where_the_filter_fails():
    page = render(one_study(), {name: svg(draw(one_study())) for name, draw in publishing.FIGURES.items()})
    assert not re.search(r"""(src|href)="(?!#)|<script|@import|url\((?!#)""", page)
    for words in (
        "Where the filter fails",
        "group of 9 in gradient space",
        "formal",
        "heuristic",
        "add/remove",
        "record",
    ):
        assert words in page, words
    assert "THE CLAIM" not in page


def test_a_group_that_keeps_its_leak_is_named_and_a_canary_that_loses_it_is_not():
    told, *_ = failures(everything())
    assert told.startswith("group of 9 in gradient space")
    assert "does not help" in told
    (good,) = helped(everything())
    assert good.startswith("mislabeled")


def test_without_a_group_the_page_says_that_none_was_tried():
    assert "were not tried" in failures(membership())[-1]


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


def test_a_minority_that_pays_is_named():
    flags, group = np.tile(np.arange(20) % 2 == 1, (3, 1)), np.arange(20) % 2
    seen = impact(flags, group, group, ~flags, np.ones_like(flags), group)
    audit = replace(membership(), arms=(), disparate=(Disparity(0.05, seen, 3),))
    told = failures(audit)[0]
    assert told.startswith("group 1 (minority 5 %): the filter drops 100 % of its samples, against 0 % elsewhere")
    assert told.endswith("from 1.000 to 0.000.")
    assert publishing.FIGURES["epsilons"](Audited("made-up", (), (({}, audit),))) is None
