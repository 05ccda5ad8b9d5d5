"""SmolLM2-135M-Instruct on this machine's processor.

What a text depends on: its item (prompt, seed, turn), the weights, the prompts, the precision, and, in the last bits
of the logits, which other prompts share its batch and how many threads multiply. Each row draws from its own random
stream, so a neighbour never changes what is drawn; but a last bit can tip a choice between two words that are nearly
as likely, and the text goes another way from there. The same request on the same machine with the same threads gives
the same texts. Batches are runs of 64 of the request sorted by length, and a cache keeps whole
batches: a request that was interrupted and is asked again is batched as before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalmine.protocol.errors import ModelError
from coalmine.server.generate.checkpoint import smollm2_checkpoint, without_bars
from coalmine.server.generate.items import Item, ItemGenerator, Operation, fingerprint
from coalmine.server.generate.models import SMOLLM2_SHA256, available
from coalmine.server.generate.prompts import Continuation, continuation, tidy

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_TEMPERATURE = {Operation.SAMPLE: 0.9, Operation.PARAPHRASE: 0.6, Operation.VARY: 0.9}
_TOP_K, _TOP_P = 50, 0.95
_MOST_NEW_TOKENS = 56
_SOURCES = ("prompts", "smollm2", "vocabulary")


@dataclass(frozen=True)
class _Model:
    network: Any
    tokenizer: Any
    ends: frozenset[int]
    """Tokens that hold a line break, and the end of text."""
    closing: frozenset[int]
    """Tokens that hold a quotation mark."""


class SmolLM2Generator(ItemGenerator):
    """Few-shot continuations by SmolLM2, in batches.

    Args:
        cache: folder for the converted checkpoint (270 MB).
        precision: "fp32", "bf16", or "auto": bf16 on processors that multiply it in hardware (elsewhere it is many
            times slower).
        batch: prompts per batch, >= 1.

    Raises:
        ModelError: the weights are not installed, or an unknown precision.
    """

    def __init__(self, cache: Path, *, precision: str = "auto", batch: int = 64) -> None:
        if precision not in ("auto", "fp32", "bf16"):
            raise ModelError(
                f"unknown precision {precision!r}", where="generator.precision", remedy="auto, fp32 or bf16"
            )
        if batch < 1:
            raise ModelError(f"{batch} prompts per batch", where="generator.batch", remedy="at least 1")
        if not available()["smollm2"]:
            raise ModelError(
                "the weights of SmolLM2 are not installed",
                where="generator smollm2",
                remedy="run `coalmine models add smollm2`, or use the generator `rules`",
            )
        self.cache = cache
        self.batch = batch
        self.precision = _fitting_precision() if precision == "auto" else precision
        self._loaded: _Model | None = None

    @property
    def id(self) -> str:
        """smollm2/weights digest/precision/digest of prompts and decoding."""
        here = Path(__file__).parent
        return (
            f"smollm2/{SMOLLM2_SHA256[:12]}/{self.precision}/{fingerprint(*(here / f'{name}.py' for name in _SOURCES))}"
        )

    def write(self, items: Sequence[Item]) -> Iterator[Mapping[int, str]]:
        """Whole batches, from short prompts to long ones."""
        if not items:
            return
        model = self._model()
        prompts = [continuation(item) for item in items]
        rests = model.tokenizer([prompt.rest for prompt in prompts], add_special_tokens=False).input_ids
        for prefix in dict.fromkeys(prompt.prefix for prompt in prompts):
            order = sorted(
                (index for index, prompt in enumerate(prompts) if prompt.prefix == prefix),
                key=lambda index: len(rests[index]),
            )
            for start in range(0, len(order), self.batch):
                chosen = order[start : start + self.batch]
                texts = _continue(
                    model, [prompts[i] for i in chosen], [rests[i] for i in chosen], [items[i] for i in chosen]
                )
                yield dict(zip(chosen, texts, strict=True))

    def _model(self) -> _Model:
        if self._loaded is None:
            self._loaded = _load(smollm2_checkpoint(self.cache), self.precision)
        return self._loaded


def _fitting_precision() -> str:
    import torch

    capabilities = torch.cpu.get_capabilities()
    return "bf16" if capabilities.get("amx_bf16") or capabilities.get("avx512_bf16") else "fp32"


def _load(folder: Path, precision: str) -> _Model:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with without_bars():
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        network = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True)
    network.train(False)
    pieces = tokenizer.batch_decode([[token] for token in range(len(tokenizer))])
    ends = {token for token, piece in enumerate(pieces) if "\n" in piece} | {tokenizer.eos_token_id}
    closing = {token for token, piece in enumerate(pieces) if '"' in piece}
    return _Model(network, tokenizer, frozenset(ends), frozenset(closing))


def _continue(
    model: _Model, prompts: Sequence[Continuation], rests: list[list[int]], items: Sequence[Item]
) -> list[str]:
    """Continue every prompt until its text ends; what all share is read once, rows that are done leave the batch."""
    import torch

    rows = len(items)
    longest = max(map(len, rests))
    prefix = model.tokenizer(prompts[0].prefix, add_special_tokens=False, return_tensors="pt").input_ids
    limits = [_limit(item, len(rest)) for item, rest in zip(items, rests, strict=True)]
    draws = torch.stack([torch.from_numpy(item.stream().random(_MOST_NEW_TOKENS)) for item in items])
    temperatures = torch.tensor([[_TEMPERATURE[item.operation]] for item in items], dtype=torch.float64)
    filler = model.tokenizer.pad_token_id
    tokens = torch.tensor([[filler] * (longest - len(rest)) + rest for rest in rests])
    seen = torch.tensor([[1] * prefix.shape[1] + [0] * (longest - len(rest)) + [1] * len(rest) for rest in rests])
    positions = (seen.cumsum(1) - 1)[:, prefix.shape[1] :].clamp(min=0)
    written: list[list[int]] = [[] for _ in range(rows)]
    alive = list(range(rows))
    with torch.inference_mode():
        memory = _remember(model, prefix, rows)
        for step in range(max(limits)):
            logits = _logits(model, tokens, seen, positions, memory)
            chosen = choose(logits, draws[alive, step], temperatures[alive])
            going = []
            for place, (row, token) in enumerate(zip(alive, chosen.tolist(), strict=True)):
                quoted = prompts[row].quoted and token in model.closing
                if token not in model.ends:
                    written[row].append(token)
                    if not quoted and len(written[row]) < limits[row]:
                        going.append(place)
            if not going:
                break
            if len(going) < len(alive):
                memory.batch_select_indices(torch.tensor(going))
                alive, seen = [alive[place] for place in going], seen[going]
            tokens = chosen[going, None]
            seen = torch.cat([seen, torch.ones(len(going), 1, dtype=seen.dtype)], dim=1)
            positions = seen.sum(1, keepdim=True) - 1
    return [_text(model, prompt, tokens) for prompt, tokens in zip(prompts, written, strict=True)]


def choose(logits: Tensor, draws: Tensor, temperatures: Tensor) -> Tensor:
    """One token per row by inverting the cumulative distribution, cut to the most likely tokens (top k, then top p).

    Args:
        logits: (n, vocabulary).
        draws: (n,) float64 in [0, 1), each row's own.
        temperatures: (n, 1) float64, > 0.

    Returns:
        (n,) int64.
    """
    import torch

    values, candidates = logits.float().topk(min(_TOP_K, logits.shape[1]), dim=1)
    shares = torch.softmax(values.double() / temperatures, dim=1)
    cumulative = shares.cumsum(1)
    shares = shares * (cumulative - shares < _TOP_P)
    cumulative = shares.cumsum(1)
    rank = (cumulative <= draws[:, None] * cumulative[:, -1:]).sum(1, keepdim=True)
    last = (shares > 0).sum(1, keepdim=True) - 1
    return candidates.gather(1, torch.minimum(rank, last))[:, 0]


def _remember(model: _Model, prefix: Tensor, rows: int) -> Any:
    """The attention keys and values of the shared prefix, one copy per row."""
    from transformers import DynamicCache

    memory = DynamicCache()
    _logits(model, prefix, None, None, memory)
    memory.batch_repeat_interleave(rows)
    return memory


def _logits(model: _Model, tokens: Tensor, seen: Tensor | None, positions: Tensor | None, memory: Any) -> torch.Tensor:
    """(n, vocabulary) logits after the last token; ``memory`` grows by the tokens."""
    output = model.network(
        input_ids=tokens, attention_mask=seen, position_ids=positions, cache=memory, use_cache=True, logits_to_keep=1
    )
    result: torch.Tensor = output.logits[:, -1]
    return result


def _limit(item: Item, length: int) -> int:
    """How many tokens a text may have: a rewording is not much longer than its source."""
    return min(_MOST_NEW_TOKENS, length + length // 2) if item.operation is Operation.PARAPHRASE else _MOST_NEW_TOKENS


def _text(model: _Model, prompt: Continuation, tokens: list[int]) -> str:
    text: str = model.tokenizer.decode(tokens, skip_special_tokens=True)
    return tidy(text.split('"', 1)[0] if prompt.quoted else text)
