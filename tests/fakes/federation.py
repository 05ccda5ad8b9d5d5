"""A small federation on digits: what the Flower apps read, but for the scope of its filter."""

N, CLIENTS, STEPS = 120, 3, 12
SETTINGS = {
    "mode": "gradient",
    "clients": CLIENTS,
    "steps": STEPS,
    "seed": 7,
    "q": 0.25,
    "sigma": 0.8,
    "clip": 1.0,
    "delta": 1e-5,
    "declared_size": N,
    "universe": N,
    "optimiser": "sgd",
    "lr": 0.5,
    "momentum": 0.5,
    "local_steps": 1,
    "data.source": "digits",
    "data.train": N,
    "data.test": 50,
    "model.kind": "mlp",
    "model.hidden": "6",
    "filter.on": True,
    "filter.k": 1,
    "filter.last_epoch": 1,
}


class Stopped(Exception):
    """The server was stopped."""


def stops_after(rounds):
    """What stops a server in the round after so many; that round's answers are lost with it."""
    seen = []

    def advance(_):
        seen.append(1)
        if len(seen) == rounds + 1:
            raise Stopped

    return advance
