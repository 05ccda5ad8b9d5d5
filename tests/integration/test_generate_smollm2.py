"""The real model, if its weights are installed (`coalmine models add smollm2`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from coalmine.server.generate.checkpoint import smollm2_checkpoint
from coalmine.server.generate.collect import collect_samples
from coalmine.server.generate.models import available
from coalmine.server.generate.smollm2 import SmolLM2Generator

pytestmark = [
    pytest.mark.integration,
    pytest.mark.long,
    pytest.mark.skipif(not available()["smollm2"], reason="SmolLM2's weights are not installed"),
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def test_it_writes_again_what_it_wrote(cache: Path) -> None:
    sources = ["is the sound card plugged in?", "thanks, it works now", "ok"]
    generator = SmolLM2Generator(cache)
    texts = generator.paraphrase(sources, 3)
    assert texts == SmolLM2Generator(cache).paraphrase(sources, 3)
    assert len(texts) == 3
    assert not any("\n" in text or "<|" in text for text in texts)
    assert [path.name for path in cache.iterdir()] == [smollm2_checkpoint(cache).name]
    pool = collect_samples(generator, ["news", "chat"], 4, 0)
    assert len(set(pool.texts)) == 4
    assert generator.vary([["the cat sleeps", "a dog barks", "the bird sings"]], 0)[0]
