"""Language models of a few thousand parameters, and a folder as transformers would save it."""

from coalmine.clients.data.personas import PersonasSource, write_personas
from coalmine.server.synthesise.pieces import byte_pairs
from coalmine.server.synthesise.recipe import Shape

SHAPE = Shape(vocabulary=320, context=48, width=32, layers=1, heads=2)
PUBLIC = [text for user in write_personas(PersonasSource(30, 4, seed=3)).users for text in user.records]


def small_pieces():
    return byte_pairs(PUBLIC, SHAPE.vocabulary)


def save_model(folder, kind):
    """A random GPT-2 or Llama with a tokenizer of its own."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=alphabet, special_tokens=["<|end|>"], show_progress=False
    )
    tokenizer.train_from_iterator(PUBLIC, trainer)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if kind == "gpt2":
            model = GPT2LMHeadModel(GPT2Config(
                vocab_size=300, n_positions=64, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
            ))  # fmt: skip
        else:
            model = LlamaForCausalLM(LlamaConfig(
                vocab_size=300, max_position_embeddings=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                num_attention_heads=2, num_key_value_heads=1, bos_token_id=0, eos_token_id=0,
            ))  # fmt: skip
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>").save_pretrained(folder)
    return folder
