"""The plan, the world and the broken parts of the selftest; one small run of it."""

import ast
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracles import naive_round

from coalmine.clients.shard import Shard
from coalmine.deploy import cli
from coalmine.deploy.selftest import experiment
from coalmine.deploy.selftest.experiment import CORRECT, SWAPPED, Claims, Repetition, build_bench
from coalmine.deploy.selftest.plan import Group, read_plan
from coalmine.deploy.selftest.verdict import judge
from coalmine.deploy.selftest.world import LABELS, build_world
from coalmine.deploy.study import Study
from coalmine.protocol.accounting import pld_epsilon
from coalmine.protocol.randomness import Simulated

ROOT = Path(__file__).resolve().parents[2]
PLAN = read_plan()
KNOBS = PLAN.mechanism.q, PLAN.mechanism.sigma
CLAIMS = Claims(*(pld_epsilon(*KNOBS, rounds, PLAN.mechanism.delta)[1] for rounds in (1, 2)))


@pytest.fixture(scope="module")
def bench():
    return build_bench(PLAN, PLAN.seed, CLAIMS)


@pytest.fixture(scope="module")
def repetition(bench):
    return bench.run(0)


def test_the_plan_says_what_must_reveal_each_bug():
    kinds = {Group.LEAKS: ("bound/",), Group.WRONG: ("noise/", "means/")}
    for bug in PLAN.bugs:
        if bug.group is Group.INVISIBLE:
            assert bug.test is None
            assert bug.reason
        else:
            assert bug.test in PLAN.tests
            assert bug.test.startswith(kinds[bug.group])
    assert {bug.group for bug in PLAN.bugs} == set(Group)
    assert len({bug.name for bug in PLAN.bugs}) == len(PLAN.bugs)
    assert PLAN.layout.users == 200
    assert PLAN.layout.rounds * PLAN.layout.focused <= 100_000
    assert PLAN.repetitions == 200
    assert PLAN.required == 0.95


def test_every_bug_was_built_and_nothing_else(bench):
    built = set(bench.behind_shard) | set(bench.broken)
    assert built == {bug.name for bug in PLAN.bugs} - {SWAPPED} | {CORRECT}
    honest_votes = bench.honest._cast(bench.world.ballot)
    for name, (shard, _) in bench.broken.items():
        votes, (bug,) = shard._cast(bench.world.ballot), [bug for bug in PLAN.bugs if bug.name == name]
        other_votes = len(votes.units) != len(honest_votes.units) or not np.array_equal(votes.units, honest_votes.units)
        drawn = [not np.array_equal(shard._draw(r, r), bench.honest._draw(r, r)) for r in range(5)]
        assert other_votes or any(drawn), f"{name} is not broken"
        assert bug.where == "shard"


def test_each_canary_is_alone_with_its_probes():
    world = build_world(PLAN.layout, PLAN.mechanism, PLAN.seed)
    assert len(world.hosted.ids) == PLAN.layout.users
    everyone = Shard(0, world.hosted, PLAN.mechanism, b"k" * 32, world.bits).votes_on(
        world.ballot, np.arange(len(world.ballot.bank))
    )
    for kind, cast in world.phantoms.items():
        assert not everyone[:, cast.probes.ravel()].any(), "nobody votes for a phantom's probes"
        inserted = world.inserted[kind]
        for vote, probes in zip(inserted.votes, inserted.probes, strict=True):
            assert (everyone[:, probes].any(axis=1)).sum() == 1
            assert set(np.flatnonzero(vote)) == set(probes)
        for votes in (cast.votes, inserted.votes):
            np.testing.assert_allclose(np.linalg.norm(votes, axis=1), PLAN.mechanism.clip, rtol=1e-9)
    assert all(np.all(np.diff(part) >= 0) for part in np.split(world.labels, world.hosted.offsets[1:-1]))
    assert set(world.labels) == set(range(LABELS))


def test_the_honest_shard_is_the_real_one(bench):
    world, key = bench.world, Simulated(PLAN.seed).participation_key
    users = [
        (name, world.hosted.records[low:high])
        for name, low, high in zip(world.hosted.ids, world.hosted.offsets[:-1], world.hosted.offsets[1:], strict=True)
    ]
    parts = []
    bench.honest.take_part(world.ballot, [3], None, lambda _rounds, _shard, sums: parts.append(sums[0]))
    plain = naive_round.noise_free_sum(users, world.ballot, PLAN.mechanism, world.bits, key, 3)
    np.testing.assert_array_equal(parts[0], plain)


def test_broken_votes_are_broken_as_the_plan_says(bench):
    world, clip = bench.world, PLAN.mechanism.clip

    def norms(name, kind):
        shard, _ = bench.broken[name]
        votes = shard._cast(world.ballot)
        cast = world.inserted[kind]
        users = range(len(world.hosted.ids))
        of = {id: u for u, id in zip(users, world.hosted.ids, strict=True)}
        found = []
        for number in range(len(cast.votes)):
            user = of[f"{kind} {number}"]
            dense = np.zeros(len(world.ballot.bank))
            rows = slice(votes.start[user], votes.start[user + 1])
            np.add.at(dense, votes.index[rows], votes.units[rows] / 2.0**votes.bits)
            found.append(np.linalg.norm(dense))
        return np.array(found) / clip

    np.testing.assert_allclose(norms("no clipping", "focused"), 1 / np.sqrt(5) / clip, rtol=1e-9)
    np.testing.assert_allclose(norms("sum of record votes", "focused"), PLAN.layout.records, rtol=1e-9)
    np.testing.assert_allclose(norms("votes per label", "spread"), np.sqrt(LABELS), rtol=1e-9)
    np.testing.assert_allclose(norms("votes per label", "focused"), 1, rtol=1e-9)
    np.testing.assert_allclose(norms("clipped per record", "spread"), 1 / np.sqrt(LABELS), rtol=1e-9)
    assert (norms("votes rounded", "focused") < 0.8).all()


def test_one_repetition_finds_every_bug_by_its_own_test(repetition):
    missed = [bug.name for bug in PLAN.bugs if bug.test and not repetition.alarms[bug.name][bug.test]]
    assert missed == []
    assert repetition.refused
    assert set(repetition.alarms[CORRECT]) == set(PLAN.tests)
    assert not any(alarm for test, alarm in repetition.alarms[CORRECT].items() if test.startswith(("bound", "phantom")))


def test_harmless_bugs_contradict_no_claim(repetition):
    for bug in PLAN.bugs:
        if bug.group is Group.WRONG:
            assert not any(alarm for test, alarm in repetition.alarms[bug.name].items() if test.startswith("bound"))


def test_a_verdict_counts(repetition):
    silent = dict.fromkeys(PLAN.tests, False)
    blind = Repetition(dict.fromkeys(repetition.alarms, silent), refused=True)
    verdict = judge(PLAN, 1, [repetition, blind])
    assert not verdict.passed
    assert {one.bug.name for one in verdict.detections if not one.found} == {bug.name for bug in PLAN.bugs if bug.test}
    assert {one.named.times for one in verdict.detections if one.bug.test} == {1}
    assert judge(PLAN, 1, [repetition]).passed
    noisy = Repetition({**repetition.alarms, CORRECT: {**silent, "phantom/bound": True}}, refused=True)
    alarmed = judge(PLAN, 1, [noisy] * 10)
    assert [one.test for one in alarmed.false_alarms if not one.nominal] == ["phantom/bound"]
    assert not judge(PLAN, 1, [replace(repetition, refused=False)]).passed


def test_no_study_can_switch_a_bug_on():
    allowed = {ROOT / "deploy/coalmine/deploy/commands/selftest.py"}
    inside = ROOT / "deploy/coalmine/deploy/selftest"
    for room in ("protocol", "server", "clients", "auditor", "deploy"):
        for path in (ROOT / room).rglob("*.py"):
            if path in allowed or inside in path.parents:
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert not any("deploy.selftest" in name for name in names), path
    assert "selftest" not in json.dumps(Study.model_json_schema())


def test_the_public_seed_is_no_seed_for_a_selftest():
    with pytest.raises(experiment.StudyError, match="public"):
        experiment.run_selftest(0, 1, 1, lambda _: None)


def test_the_verb_answers_in_json_and_fails_loudly(monkeypatch, capsys, repetition):
    blind = Repetition({name: dict.fromkeys(PLAN.tests, False) for name in repetition.alarms}, refused=True)
    for found, expected in (([repetition] * 3, 0), ([blind] * 3, 1)):
        monkeypatch.setattr(experiment, "run_selftest", lambda *_, found=found: found)
        monkeypatch.setattr(sys, "argv", ["coalmine", "selftest", "--repetitions", "3", "--json"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert (ended.value.code or 0) == expected
        told = json.loads(capsys.readouterr().out)
        assert told["passed"] is (expected == 0)
        assert {bug["name"] for bug in told["bugs"]} == {bug.name for bug in PLAN.bugs}
        assert all(bug["reason"] for bug in told["bugs"] if bug["group"] == "invisible")


def test_a_terminal_of_80_columns_shows_every_name(monkeypatch, capsys, repetition):
    monkeypatch.setattr(experiment, "run_selftest", lambda *_: [repetition])
    monkeypatch.setattr(sys, "argv", ["coalmine", "selftest", "--repetitions", "1"])
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        cli.main()
    out = capsys.readouterr().out
    assert "…" not in out
    assert max(map(len, out.split("invisible:")[0].splitlines())) <= 80
    assert out.count("verdict") == 2
    assert all(word in out for bug in PLAN.bugs for word in bug.name.split())
    assert all(test in out for test in PLAN.tests)
