"""Any causal language model in a local folder, frozen but for small adapters (LoRA: Hu et al. 2021, arXiv 2106.09685).

Adapters are plain linear layers, whose gradients Opacus finds record by record whatever the frozen model is made of.
Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from coalmine.protocol.errors import ModelError
from coalmine.server.generate.checkpoint import without_bars

RANK = 8
_SCALE = 2.0


class _Adapted(nn.Module):
    """W x + s B A x, of which A and B are trained; B starts at 0, so that nothing changes before training."""

    def __init__(self, frozen: nn.Module, inputs: int, outputs: int) -> None:
        super().__init__()
        self.frozen = frozen
        self.down = nn.Linear(inputs, RANK, bias=False)
        self.up = nn.Linear(RANK, outputs, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        changed: Tensor = self.frozen(x) + _SCALE * self.up(self.down(x))
        return changed


class LocalModel(nn.Module):
    """A frozen model with an adapter at every linear layer of its blocks.

    Raises:
        ModelError: no layer to adapt.
    """

    def __init__(self, network: Any, seed: int, where: str) -> None:
        super().__init__()
        self.network = network
        self.context = int(getattr(network.config, "max_position_embeddings", 1024))
        for parameter in network.parameters():
            parameter.requires_grad_(False)
        head = network.get_output_embeddings()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            adapted = [_adapt(parent, head) for parent in list(network.modules())]
        if not sum(adapted):
            raise ModelError("the model has no linear layer to adapt", where=where, remedy="choose a transformer")

    def forward(self, pieces: Tensor) -> Tensor:
        """(n, t) pieces, padded on the right, to (n, t, vocabulary) logits."""
        logits: Tensor = self.network(input_ids=pieces, use_cache=False).logits
        return logits

    def remember(self) -> Any:
        """Nothing yet read."""
        from transformers import DynamicCache

        return DynamicCache()

    def step(self, pieces: Tensor, memory: Any) -> Tensor:
        """(n, vocabulary) logits after further pieces."""
        logits: Tensor = self.network(input_ids=pieces, cache=memory, use_cache=True).logits
        return logits[:, -1]


class LocalPieces:
    """The pieces of a local model's own tokenizer."""

    def __init__(self, tokenizer: Any, size: int, where: str) -> None:
        if tokenizer.eos_token_id is None:
            raise ModelError("the tokenizer has no end of text", where=where, remedy="choose another model")
        self._tokenizer = tokenizer
        self.size = size
        self.end = int(tokenizer.eos_token_id)
        self.begin = int(tokenizer.bos_token_id if tokenizer.bos_token_id is not None else self.end)

    def encode(self, text: str) -> list[int]:
        """Marks that a text only looks to hold are encoded letter by letter."""
        return list(self._tokenizer(text, add_special_tokens=False, split_special_tokens=True).input_ids)

    def decode(self, pieces: Sequence[int]) -> str:
        return str(self._tokenizer.decode(pieces, skip_special_tokens=True))


def open_local(folder: Path, seed: int) -> tuple[LocalModel, LocalPieces]:
    """The model of a folder as `transformers` saves it, in float32, with fresh adapters.

    Raises:
        ModelError: no such folder, or no causal language model in it.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if not (folder / "config.json").is_file():
        raise ModelError(
            "there is no model in this folder",
            where=str(folder),
            remedy="give a folder that transformers' save_pretrained wrote, with its tokenizer",
        )
    try:
        with without_bars():
            network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(
            f"not a causal language model with a tokenizer ({type(error).__name__})",
            where=str(folder),
            remedy="save both with save_pretrained",
        ) from error
    network.train(False)
    return LocalModel(network, seed, str(folder)), LocalPieces(tokenizer, network.config.vocab_size, str(folder))


def _adapt(parent: nn.Module, head: nn.Module | None) -> int:
    from transformers.pytorch_utils import Conv1D

    found = 0
    for name, layer in list(parent.named_children()):
        if layer is head or isinstance(parent, _Adapted):
            continue
        if isinstance(layer, nn.Linear):
            setattr(parent, name, _Adapted(layer, layer.in_features, layer.out_features))
        elif isinstance(layer, Conv1D):  # GPT-2's linear layers, with the weight the other way round
            setattr(parent, name, _Adapted(layer, layer.weight.shape[0], layer.weight.shape[1]))
        else:
            continue
        found += 1
    return found
