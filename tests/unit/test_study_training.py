"""The section training of a study, and what the Flower apps get of it."""

import tomllib
from pathlib import Path

import pytest
import yaml

from coalmine.deploy.study_file import build_study, read_study
from coalmine.protocol.dpsgd.terms import terms
from coalmine.protocol.errors import DataError, StudyError

ROOT = Path(__file__).resolve().parents[2]


def study(**training):
    return build_study({"training": {"sigma": 1.0, **training}})


@pytest.mark.parametrize("name", ["filter-digits", "filter-mnist", "filter-attacks", "filter-minority"])
def test_the_studies_that_are_shipped_are_valid(name):
    assert read_study(ROOT / "studies" / f"{name}.yaml", ["training.eps=null", "training.sigma=1"]).training is not None


def test_the_apps_agree_on_what_the_study_says():
    agreed = terms(
        study(filter={"k": 2, "last_epoch": None}, steps=30, clients=4, scope="federation").training.settings(9)
    )
    assert (agreed.seed, agreed.clients, agreed.steps, agreed.universe) == (9, 4, 30, 1000)
    assert agreed.filter.k == 2
    assert agreed.filter.last_epoch is None
    assert agreed.filterings == (0, 10, 20)


def test_noise_follows_from_an_epsilon():
    section = build_study({"training": {"eps": 4.0, "steps": 10}}).training
    assert section.terms(0).mechanism.sigma == section.noise()
    from coalmine.protocol.accounting import prv_epsilon

    assert prv_epsilon(0.1, section.noise(), 10, 1e-5) <= 4.0 < prv_epsilon(0.1, section.noise() - 2e-4, 10, 1e-5)


def test_flowers_own_settings_are_valid_and_private_files_stay_at_home():
    app = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    flat = {}
    for key, value in app["config"].items():
        flat |= {f"{key}.{inner}": one for inner, one in value.items()} if isinstance(value, dict) else {key: value}
    assert terms(flat).clients == 10
    assert app["fab-include"] == ["LICENSE", "README.md"]


@pytest.mark.parametrize(
    ("training", "said"),
    [
        ({"sigma": None}, "one of sigma and eps"),
        ({"eps": 1.0}, "one of sigma and eps"),
        ({"sigma": 0.0}, "noise multiplier"),
        ({"clip": 0.0}, "L2 bound"),
        ({"clints": 3}, "clients"),
        ({"filter": {"k": 0}}, "filter.k"),
        ({"filter": {"max_dropped": 5}}, "must not depend on how many samples"),
        ({"filter": {"signatur": "loss"}}, "signature"),
        ({"filter": {"signature": "los"}}, "loss"),
        ({"mode": "local", "local_steps": 7}, "divisor"),
        ({"model": {"pretrain": 5}}, "public"),
        ({"audit": {"models": 19}}, "20"),
        ({"audit": {"models": 10**20}}, r"training\.audit\.models: .*less than or equal to 1000000"),
        ({"audit": {"group": 10**20}}, r"training\.audit\.group: .*less than"),
        ({"audit": {"one_run": {"canaries": 10**20}}}, r"training\.audit\.one_run\.canaries: .*less than"),
        ({"audit": {"label_only": {"shift": 99999999}}}, r"training\.audit\.label_only\.shift: .*less than"),
        ({"clients": 99999999999999999999}, r"training\.clients: .*less than or equal to 100000"),
        ({"steps": 10**9}, r"training\.steps: .*less than or equal to 1000000"),
        ({"model": {"hidden": [10**12]}}, r"training\.model\.hidden\.0: .*less than"),
        ({"model": {"hidden": [10**5, 10**5]}}, r"training\.model\.hidden: 10,000,200,000 parameters .*at most"),
        ({"model": {"hidden": []}}, r"training\.model\.hidden: no hidden layer"),
        ({"q": 1e-320}, r"training\.q: 1e-320 is not allowed"),
        ({"q": 1e-320, "sigma": None, "eps": 1.0}, r"training\.q: 1e-320 is not allowed"),
        ({"sigma": 1e-320}, r"training\.sigma: 1e-320 is not allowed"),
        ({"sigma": 0.01}, r"training\.sigma: 0\.01 is too little noise to account for"),
        ({"sigma": None, "eps": float("inf")}, r"training\.eps: .*finite"),
        ({"audit": {"canaries": []}}, "nothing is audited"),
        ({"audit": {"one_run": {"canaries": 10, "guesses": [8, 8]}}}, "16 guesses"),
        ({"audit": {"canaries": [], "group": 3, "onion": True}}, "name some"),
        ({"audit": {"canaries": [], "onion": True}}, "nothing is audited"),
        ({"audit": {"disparate": {"minority": [0.6]}}}, "0.5"),
        ({"audit": {"label_only": {"modls": 20}}}, "models"),
        ({"audit": {"sampling": "shuffeld"}}, "poisson"),
        ({"audit": {"sampling": "shuffled", "white_box": True}}, "rest on Poisson batches"),
    ],
)
def test_mistakes_are_named(training, said):
    with pytest.raises(StudyError, match=said):
        study(**training)


@pytest.mark.parametrize(
    ("key", "values", "said"),
    [
        ("training.audit.alpha", [0.05, 0.1], "of its audit only training.audit.interpolation"),
        ("training.audit", [{"alpha": 0.05}, {"alpha": 0.1}], "of its audit only"),
        ("data.test", [50, 60], "cannot be swept here"),
    ],
)
def test_a_report_has_one_level_and_one_question(key, values, said):
    from coalmine.deploy.training.audit_studio import _prepared

    with pytest.raises(StudyError, match=said):
        _prepared([({key: value}, study()) for value in values])


def test_keys_that_change_together_are_told_in_words():
    from coalmine.deploy.training.audit_studio import _plain

    swept = {"training.filter": {"reach": "global", "k": 30}, "training.q": 0.1, "training.model.hidden": [8]}
    assert list(_plain(swept).values()) == ["reach global, k 30", 0.1, "[8]"]


def test_shuffled_batches_reach_the_shadow_models_and_make_the_claim_heuristic():
    from coalmine.deploy.training.audit import mechanism_of
    from coalmine.deploy.training.prepare import audit_facts, prepared
    from coalmine.protocol.dpsgd.claims import claim

    for sampling, assurance in (("poisson", "formal"), ("shuffled", "heuristic")):
        ready = prepared(study(data={"train": 100, "test": 50}, audit={"sampling": sampling}))
        assert mechanism_of(ready).sampling == sampling
        assert claim(mechanism_of(ready), 3).assurance == assurance
        assert audit_facts(ready, 1)["audit.sampling"] == f'"{sampling}"'


def test_what_only_the_data_show_is_refused_before_anything_is_trained():
    from coalmine.deploy.training.prepare import prepared

    few = {"train": 100, "test": 50}
    with pytest.raises(StudyError, match="no section training"):
        prepared(build_study({}))
    with pytest.raises(StudyError, match="can drop 500 of 100"):
        prepared(study(data=few, clients=10, filter={"k": 1}))
    assert "can drop 500" in prepared(study(data=few, clients=10, filter={"k": 1, "force": True})).notices[0]
    assert "can drop 50 of" in prepared(study(data=few, clients=1, filter={"k": 1})).notices[0]
    with pytest.raises(DataError, match="private"):
        prepared(study(data={"train": 5000}))
    with pytest.raises(DataError, match="would hold no sample"):
        prepared(study(data=few, clients=10, partition={"kind": "dirichlet", "alpha": 0.001}))


def test_an_epsilon_out_of_reach_is_named_as_the_study_names_it():
    with pytest.raises(StudyError, match=r"training\.eps: no noise reaches"):
        build_study({"training": {"eps": 1e-3}}).training.noise()


def test_views_that_leave_the_image_are_refused_before_anything_is_trained():
    from coalmine.deploy.training.checks import auditable
    from coalmine.deploy.training.prepare import prepared

    few = {"train": 100, "test": 50}
    auditable(prepared(study(data=few, audit={"canaries": [], "label_only": {"shift": 7}})))
    with pytest.raises(StudyError, match=r"label_only\.shift: images of 8 x 8 .*needs at most 7"):
        auditable(prepared(study(data=few, audit={"canaries": [], "label_only": {"shift": 8}})))


def test_a_source_beside_the_study_is_found(tmp_path):
    (tmp_path / "mine.npz").write_bytes(b"")
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump({"training": {"sigma": 1, "data": {"source": "mine.npz"}}}))
    assert read_study(path).training.data.source == str(tmp_path / "mine.npz")


def test_flower_may_change_every_key_that_a_study_sets():
    app = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    there = {
        f"{key}.{inner}" if isinstance(value, dict) else key
        for key, value in app.items()
        for inner in (value if isinstance(value, dict) else [""])
    }
    own = study(filter={})
    assert set(own.training.settings(0) | own.population.settings()) <= there


@pytest.mark.parametrize(
    ("training", "said"),
    [
        ({"mode": "local", "local_steps": 10}, "gradient mode"),
        ({"audit": {"canaries": ["clipbkd"]}}, "public reference model"),
        ({"data": {"public": 50}, "audit": {"canaries": ["defence_aware"]}}, "evades a filter"),
        ({"model": {"kind": "cnn"}, "audit": {"canaries": [], "white_box": True}}, "nobody's gradient touches"),
        ({"audit": {"canaries": [], "disparate": {}}}, "no filter whose impact"),
        ({"filter": {"force": True}, "audit": {"canaries": [], "disparate": {}}}, "no subgroups"),
        (
            {"filter": {"force": True}, "audit": {"canaries": [], "disparate": {"minority": [0.1]}}},
            "for coloured digits",
        ),
    ],
)
def test_an_audit_that_could_not_finish_is_refused_before_it_begins(training, said):
    from coalmine.deploy.training.checks import auditable
    from coalmine.deploy.training.prepare import prepared

    ready = prepared(study(**{"data": {"train": 100, "test": 50}, **training}))
    with pytest.raises(StudyError, match=said):
        auditable(ready)
