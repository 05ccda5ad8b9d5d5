"""Canary's Echo, word by word, with dictionaries."""

import math
from collections import Counter


def log_probability(canary, texts, n, vocabulary, smoothing):
    grams, contexts = Counter(), Counter()
    for text in texts:
        for context, word in _places(text, n):
            grams[context, word] += 1
            contexts[context] += 1
    return sum(
        math.log((grams[context, word] + smoothing) / (contexts[context] + smoothing * vocabulary))
        for context, word in _places(canary, n)
    )


def auc(members, others):
    wins = sum((a > b) + 0.5 * (a == b) for a in members for b in others)
    return wins / (len(members) * len(others))


def _places(text, n):
    words = [None] * (n - 1) + text.split()
    return [(tuple(words[i : i + n - 1]), words[i + n - 1]) for i in range(len(text.split()))]
