"""DP-SGD with filtering as a plain loop over samples with torch's autograd: the oracle of the fast trainer."""

import numpy as np
import torch
from torch.nn import functional

from coalmine.protocol.dpsgd.filter import drop
from coalmine.protocol.dpsgd.optimiser import State
from coalmine.protocol.dpsgd.sampling import poisson_batch
from coalmine.protocol.dpsgd.signatures import Surroundings, public_directions, signature
from coalmine.protocol.dpsgd.step import private_gradient
from coalmine.protocol.randomness import Purpose, stream


def gradient(module, x, y):
    """((P,) gradient of one sample's cross-entropy averaged over its (K, *shape) views, (c,) logits of the first)."""
    module.zero_grad()
    logits = module(x)
    functional.cross_entropy(logits, y.expand(len(x))).backward()
    flat = torch.cat([parameter.grad.flatten() for parameter in module.parameters()])
    return flat.double().numpy().copy(), logits[0].detach().double().numpy()


def load(module, theta):
    torch.nn.utils.vector_to_parameters(
        torch.as_tensor(theta, dtype=next(module.parameters()).dtype), module.parameters()
    )


def train(module, plan, x, y, members, seed, start):
    """((P,) parameters, {id: epoch at which it was dropped}) of one model."""
    theta, state, active, updates, dropped = start.copy(), State(), members.copy(), [], {}
    schedule = plan.filter
    due = (
        dict(zip(schedule.steps(plan.steps, plan.privacy.q), schedule.epochs(plan.steps, plan.privacy.q), strict=True))
        if schedule
        else {}
    )
    for step in range(plan.steps):
        load(module, theta)
        if step in due:
            directions = public_directions(stream(seed, Purpose.DIRECTIONS), schedule.directions, len(theta))
            window = np.array(updates[-schedule.window :]).reshape(-1, len(theta))
            around = Surroundings(plan.privacy.clip, window, directions)
            ids = np.flatnonzero(active)
            scores = []
            for i in ids:
                g, z = gradient(module, x[i : i + 1], y[i])
                scores.append(signature(schedule.signature, g, z, int(y[i]), around))
            for i in drop(ids, y.numpy()[ids], scores, schedule.k, schedule.reach):
                active[i] = False
                dropped[int(i)] = due[step]
        batch = np.flatnonzero(poisson_batch(stream(seed, Purpose.BATCH, step), len(y), plan.privacy.q) & active)
        gradients = np.array([gradient(module, x[i : i + 1], y[i])[0] for i in batch]).reshape(-1, len(theta))
        update = private_gradient(gradients, plan.privacy, stream(seed, Purpose.NOISE, step))
        updates.append(update)
        theta, state = plan.optimiser.step(theta, update, state)
    return theta, dropped
