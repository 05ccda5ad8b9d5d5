"""The loss of one sample under a plan."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from coalmine.clients.training.hamp import soft_label
from coalmine.clients.training.plan import CrossEntropy, Hamp


def losses(kind: CrossEntropy | Hamp, logits: Tensor, labels: Tensor) -> Tensor:
    """(n, ...) losses of (n, ..., c) logits and (n, ...) labels."""
    # Classes second, as torch's kernels want them: over a short last dimension they take several times as long.
    by_class = logits.movedim(-1, 1).contiguous()
    if isinstance(kind, CrossEntropy):
        return functional.cross_entropy(by_class, labels, reduction="none")
    log_p = functional.log_softmax(by_class, dim=1)
    own = log_p.gather(1, labels.unsqueeze(1)).squeeze(1)
    true, other = soft_label(logits.shape[-1], kind.gamma)
    entropy = -(log_p.exp() * log_p).sum(1)
    soft = -(true - other) * own - other * log_p.sum(1)
    return soft - kind.alpha * entropy


def finite(values: Tensor) -> bool:
    return bool(torch.isfinite(values).all())
