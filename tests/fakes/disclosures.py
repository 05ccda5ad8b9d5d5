"""Material and classes whose truth is known."""

import re

import numpy as np

from coalmine.auditor.disclosure.counted import Counted
from coalmine.auditor.disclosure.feature_class import Similarities
from coalmine.auditor.disclosure.material import in_memory

SECRET = re.compile(r"secret-\d+")


def secrets():
    """A discrete class: words like secret-17."""
    return Counted("secrets", lambda text: SECRET.findall(text), ("words like secret-17",))


class Overlapping:
    """A similarity class: cosine of letter counts, rarity by user number."""

    name = "letters"
    notes = ("letters are counted",)

    def similarities(self, material):
        n = len(material.train)
        private = np.zeros((n, 128))
        for entry in material.private():
            private[entry.user] += counts(entry.text)
        output = np.array([counts(text) for text in material.synthetic()])
        with np.errstate(invalid="ignore"):
            unit = private / np.linalg.norm(private, axis=1, keepdims=True)
        cosines = unit @ (output / np.linalg.norm(output, axis=1, keepdims=True)).T
        nearest = np.sort(cosines, axis=1)[:, ::-1][:, :2]
        best = np.where(np.isnan(cosines[:, 0]), -1, np.nan_to_num(cosines).argmax(axis=1))
        return Similarities(np.where(np.isnan(nearest[:, 0]), np.nan, np.arange(n) % 97.0), nearest, best)


def counts(text):
    return np.bincount([ord(letter) for letter in text if ord(letter) < 128], minlength=128).astype(float)


def records(n, rng):
    """One record per user, with a secret that nobody else has."""
    words = "amber bronze cedar delta ember frost grove haven ivory jade kelp lilac maple".split()  # noqa: SIM905
    return [f"{' '.join(rng.choice(words, 12))} secret-{user} {' '.join(rng.choice(words, 12))}" for user in range(n)]


def world(n, share, seed=0, phantoms=0.02):
    """Users on fair coins; of train the share is copied into the output, of all users some secrets occur by chance.

    Returns:
        Material, and the synthetic records.
    """
    rng = np.random.default_rng(seed)
    texts = records(n, rng)
    train = rng.random(n) < 0.5
    inside = [text for text, keep in zip(texts, train, strict=True) if keep]
    outside = [text for text, keep in zip(texts, train, strict=True) if not keep]
    output = [text.replace("secret-", "public-") for text in records(n // 2, rng)]
    copied = rng.permutation(len(inside))[: round(share * len(inside))]
    output += [inside[index] for index in copied]
    output += [f"perhaps secret-{user} again" for user in np.flatnonzero(rng.random(n) < phantoms)]
    return in_memory([[text] for text in inside], [[text] for text in outside], output)
