"""The update of one DP-SGD step without noise, one user after the other."""

import torch

from coalmine.server.synthesise.training import record_losses


def clipped_mean(model, users, clip, expected):
    """Sum over users of the clipped gradient of their mean loss, over the expected number."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    total = [torch.zeros_like(parameter) for parameter in parameters]
    norms = []
    for records in users:
        loss = sum(record_losses(model, [lesson])[0] for lesson in records) / len(records)
        gradient = torch.autograd.grad(loss, parameters)
        norm = torch.sqrt(sum((part**2).sum() for part in gradient))
        norms.append(float(norm))
        scale = min(1.0, clip / float(norm + 1e-6))
        total = [so_far + scale * part for so_far, part in zip(total, gradient, strict=True)]
    return [part / expected for part in total], norms
