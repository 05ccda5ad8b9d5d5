"""Closeness of users to each other and to the synthetic output: one pair at a time, in double precision."""

import numpy as np


def similarities(records, outputs, users, encode, kappa, kappa_y):
    """(rarity, nearest, closeness to every output, NaN where there is none); ``encode`` embeds one text."""
    embeddings = {}
    for user in range(users):
        own = [encode(text).astype(float) for of, text in records if of == user and text.strip()]
        if own and np.linalg.norm(np.sum(own, axis=0)) > 1e-6 * len(own):
            embeddings[user] = np.sum(own, axis=0) / np.linalg.norm(np.sum(own, axis=0))
    told = {index: encode(text).astype(float) for index, text in enumerate(outputs) if text.strip()}
    columns = min(kappa_y, len(told))
    rarity, nearest = np.full(users, np.nan), np.full((users, columns), np.nan)
    closeness = np.full((users, len(outputs)), np.nan)
    for user, own in embeddings.items():
        others = sorted((own @ other for of, other in embeddings.items() if of != user), reverse=True)
        rarity[user] = np.mean(others[:kappa])
        for index, other in told.items():
            closeness[user, index] = own @ other
        nearest[user] = sorted((own @ other for other in told.values()), reverse=True)[:columns]
    return rarity, nearest, closeness
