"""Fine-tuning leaks; with DP-SGD it does not. Networks small enough for seconds."""

import pytest
from fakes.small_models import PUBLIC, save_model

from coalmine.protocol.errors import ModelError
from coalmine.protocol.privacy import Assurance, PrivacyUnit, ThreatModel
from coalmine.server.synthesise.corpus import Corpus
from coalmine.server.synthesise.fine_tuning import dp_sft, local_base, sft, tiny_base
from coalmine.server.synthesise.recipe import Asking, Budget, Schedule, Shape

pytestmark = pytest.mark.integration

SHAPE = Shape(vocabulary=320, context=48, width=64, layers=2, heads=2)
SECRET = "call zelda quine on 5557781 at the old mill"
RECORDS = tuple((PUBLIC[user], *((SECRET,) * 4 if user == 0 else (PUBLIC[user + 40],))) for user in range(20))
CORPUS = Corpus(RECORDS, tuple(("",) * len(texts) for texts in RECORDS))
WARM = [(text, "") for text in PUBLIC[80:]]


def base():
    return tiny_base(WARM, 0, SHAPE, epochs=1)


def test_long_training_says_the_planted_record_again():
    made = sft(CORPUS, base(), 200, 1, Schedule(epochs=80, batch=5, learning_rate=3e-3))
    said = sum(SECRET in text for text in made.texts)
    assert said >= 4
    assert len(made.texts) + made.blank == 200
    assert made.generator.startswith("sft/80 epochs/transformer of ")


def test_private_training_does_not_say_it():
    budget = Budget(epsilon=1.0, steps=60, batch=5, max_records=2, learning_rate=3e-3)
    made, claim = dp_sft(CORPUS, base(), 200, 1, budget)
    assert not any("zelda" in text or "5557781" in text or "quine" in text for text in made.texts)
    assert claim.eps_pld_upper <= 1.0
    assert (claim.q, claim.rounds, claim.unit) == (0.25, 60, PrivacyUnit.USER)
    assert (claim.threat_model, claim.assurance) == (ThreatModel.EVERY_UPDATE, Assurance.FORMAL)
    again, _ = dp_sft(CORPUS, base(), 200, 1, budget)
    assert again.texts == made.texts
    other, _ = dp_sft(CORPUS, base(), 200, 2, budget)
    assert other.texts != made.texts


def test_records_may_be_the_unit():
    _, claim = dp_sft(CORPUS, base(), 5, 1, Budget(epsilon=5, steps=3, batch=8, unit=PrivacyUnit.RECORD))
    assert (claim.unit, claim.q) == (PrivacyUnit.RECORD, 8 / 43)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_local_model_learns_through_its_adapters_alone(kind, tmp_path):
    import torch

    folder = save_model(tmp_path / kind, kind)

    def trained(how):
        opened = local_base(folder, 0)
        names = {name for name, parameter in opened.model.named_parameters() if parameter.requires_grad}
        before = {name: parameter.clone() for name, parameter in opened.model.named_parameters()}
        made = how(opened)
        changed = {n for n, parameter in opened.model.named_parameters() if not torch.equal(parameter, before[n])}
        assert changed == names
        assert all(".down." in name or ".up." in name for name in names)
        assert len(made.texts) + made.blank == 6
        return made

    asking = Asking(longest=12)
    first = trained(lambda opened: sft(CORPUS, opened, 6, 0, Schedule(epochs=2), asking))
    assert first == trained(lambda opened: sft(CORPUS, opened, 6, 0, Schedule(epochs=2), asking))
    trained(lambda opened: dp_sft(CORPUS, opened, 6, 0, Budget(epsilon=8, steps=2, batch=6), asking)[0])


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match="no model"):
        local_base(tmp_path, 0)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="not a causal language model"):
        local_base(tmp_path, 0)
