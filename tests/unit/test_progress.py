"""Stages are timed and shown, and a stage that fails is not called done."""

import io

import pytest
from rich.console import Console

from coalmine.deploy import progress
from coalmine.deploy.progress import Stages


def stages(terminal):
    out = io.StringIO()
    return Stages(Console(file=out, force_terminal=terminal, width=100, _environ={"TERM": "xterm"})), out


@pytest.mark.parametrize("terminal", [False, True])
def test_stages_are_timed_in_order(terminal):
    shown, out = stages(terminal)
    with shown:
        with shown.stage("bank", 3, "texts") as advance:
            advance(1)
            advance(2)
        with shown.stage("data"):
            pass
    assert list(shown.seconds) == ["bank", "data"]
    assert all(spent >= 0 for spent in shown.seconds.values())
    assert "bank" in out.getvalue()
    assert "data" in out.getvalue()
    assert ("3/3" in out.getvalue()) == terminal


def test_an_inner_stage_belongs_to_the_outer_one():
    shown, out = stages(False)
    with shown, shown.stage("attacks"), shown.stage("embed nonces", 5, "texts") as advance:
        advance(5)
    assert list(shown.seconds) == ["attacks"]
    assert "nonces" not in out.getvalue()


def test_without_a_terminal_a_stage_is_one_line():
    shown, out = stages(False)
    with shown, shown.stage("bank", 3, "texts") as advance:
        advance(3)
    assert out.getvalue().count("\n") == 1
    assert "\x1b" not in out.getvalue()


def test_without_a_terminal_a_long_stage_says_how_far_it_is(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    shown, out = stages(False)
    with shown, shown.stage("selftest", 1200, "repetitions") as advance:
        advance(1000)
        advance(200)
    first, second, last = out.getvalue().splitlines()
    assert first == "selftest: 1,000 of 1,200 repetitions"
    assert second == "selftest: 1,200 of 1,200 repetitions"
    assert last.startswith("selftest: 0.0 s")


def test_a_stage_that_comes_again_adds_up():
    shown, _ = stages(False)
    shown.seconds["bank"] = 5.0
    with shown, shown.stage("bank"):
        pass
    assert shown.seconds["bank"] >= 5.0


def test_a_stage_that_fails_is_not_called_done():
    shown, out = stages(False)
    with pytest.raises(ZeroDivisionError), shown, shown.stage("bank"):
        raise ZeroDivisionError
    assert shown.seconds == {}
    assert out.getvalue() == ""
