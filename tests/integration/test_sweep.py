"""What the points of a sweep share is computed once, and every point has the numbers of a study of its own."""

from collections import Counter

import pytest
import yaml
from rich.console import Console

from coalmine.clients.encoder.cache import EmbeddingCache
from coalmine.clients.encoder.cached import CachedEncoder
from coalmine.clients.encoder.chunks import in_this_process
from coalmine.clients.encoder.fake import HashEncoder
from coalmine.deploy import sweep
from coalmine.deploy.cluster import cluster
from coalmine.deploy.journal import Journal
from coalmine.deploy.progress import Stages
from coalmine.deploy.sweep_file import read_points

pytestmark = pytest.mark.integration

_STUDY = {
    "study": "grid",
    "seed": 2,
    "data": {
        "source": "personas",
        "users": 64,
        "records_per_user": 6,
        "min_records": 4,
        "auxiliary": 15,
        "calibration": 10,
        "test": 30,
    },
    "bank": {"size": 128},
    "privacy": {"max_records": 6},
    "audit": {
        "attacks": ["ordinary", "nonce", "nonce-mu"],
        "canaries": 2,
        "canary_records": 6,
        "probes": 6,
        "pool": 12,
        "trials": 4000,
        "reduced_trials": 1000,
        "replays": 0,
    },
    "sweep": {"privacy.sigma": [0.5, 1.0], "audit.alpha": [0.01, 0.05], "privacy.clip": [0.1, 0.3]},
}


class Embedded:
    """Counts the texts that an encoder has to embed because no cache holds them."""

    def __init__(self):
        self.texts = Counter()
        self._embed = in_this_process(HashEncoder(64))

    def __call__(self, chunks):
        for chunk in chunks:
            self.texts.update(chunk)
        yield from self._embed(chunks)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Every site of the sweep, with what was watched and embedded on the way; then one point as a study of its own."""
    from coalmine.deploy.campaign import Workshop
    from coalmine.deploy.parts import generator
    from coalmine.deploy.prepare import people
    from coalmine.deploy.run import run

    folder = tmp_path_factory.mktemp("sweep")
    (folder / "study.yaml").write_text(yaml.safe_dump(_STUDY, sort_keys=False))
    points = read_points(folder / "study.yaml")
    embedded, watched = Embedded(), Counter()
    watch = sweep.watch_path

    def counting(attack, number, canary, pool, campaign):
        watched[campaign.study.privacy.clip, attack.name] += 1
        return watch(attack, number, canary, pool, campaign)

    with pytest.MonkeyPatch.context() as patch, cluster(2, 256 << 20):
        patch.setattr(sweep, "watch_path", counting)
        encoder = CachedEncoder(HashEncoder(64), EmbeddingCache(folder / "cache"), embed=embedded)
        study = points[0].study
        workshop = Workshop(encoder, generator(study, folder / "cache"), Stages(Console(quiet=True)), 2)
        crowd = people(study)
        sites = {}
        for point in points:
            sites.setdefault(sweep.site(point.study), []).append(point)
        audits = {}
        for number, members in enumerate(sites.values()):
            journal = Journal(folder / f"site {number}")
            found = sweep.run_site([point.study for point in members], crowd, workshop, journal)
            audits |= {tuple(p.values.values()): audit for p, audit in zip(members, found, strict=True)}
        alone = run(points[-1].study, crowd, workshop, Journal(folder / "alone")).audit
    return points, sites, audits, embedded.texts, watched, alone


def test_points_that_differ_in_noise_and_level_share_a_site_and_the_clip_has_its_own(swept):
    _, sites, _, _, _, _ = swept
    assert [len(members) for members in sites.values()] == [4, 4]
    assert [{point.study.privacy.clip for point in members} for members in sites.values()] == [{0.1}, {0.3}]


def test_votes_are_computed_once_for_all_points_that_they_do_not_depend_on(swept):
    _, _, _, _, watched, _ = swept
    for clip in (0.1, 0.3):
        assert watched[clip, "ordinary"] == 2, "one for each canary, for four points"
        assert watched[clip, "nonce"] == 2
        assert watched[clip, "nonce-mu"] == 4, "probes chosen by separation depend on the noise: two values"


def test_every_text_is_embedded_once(swept):
    _, _, _, texts, _, _ = swept
    assert set(texts.values()) == {1}
    assert len(texts) > 400


def test_a_point_has_the_numbers_of_a_study_of_its_own(swept):
    points, _, audits, _, _, alone = swept
    found = audits[tuple(points[-1].values.values())]
    assert found.attacks == alone.attacks
    assert found.claim == alone.claim
    other = audits[tuple(points[0].values.values())]
    assert other.attacks != alone.attacks
