"""Laws of weighted sums and of subsets in exact fractions, by listing everything."""

from fractions import Fraction
from itertools import combinations, product


def coin_tail(d, threshold, rate):
    """P[sum of d_i times coins of the rate >= threshold]."""
    law = {0: Fraction(1)}
    for weight in d:
        grown = {}
        for value, mass in law.items():
            grown[value] = grown.get(value, 0) + mass * (1 - rate)
            grown[value + weight] = grown.get(value + weight, 0) + mass * rate
        law = grown
    return sum((mass for value, mass in law.items() if value >= threshold), Fraction(0))


def subset_tail(d, size, threshold):
    """P[sum of d_i over a random subset of the size >= threshold]."""
    sums = [sum(d[i] for i in chosen) for chosen in combinations(range(len(d)), size)]
    return Fraction(sum(total >= threshold for total in sums), len(sums))


def worst_subset_tail(d, size, threshold, factor):
    """The largest of these over all weights 1 or ``factor`` of subsets: a mechanism of e^eps = factor, eps-DP."""
    sums = [sum(d[i] for i in chosen) for chosen in combinations(range(len(d)), size)]
    hits = sum(total >= threshold for total in sums)
    return hits * factor / (hits * factor + len(sums) - hits)


def coupled_subset_tails(d, size, threshold, factor):
    """Of many mechanisms whose output makes subsets likelier by factor^(chosen among some users), the largest tail.

    Exchanging one user changes such a weight by ``factor`` at most.
    """
    best = Fraction(0)
    subsets = list(combinations(range(len(d)), size))
    for liked in product((0, 1), repeat=len(d)):
        masses = [factor ** sum(liked[i] for i in chosen) for chosen in subsets]
        hit = sum(m for m, chosen in zip(masses, subsets, strict=True) if sum(d[i] for i in chosen) >= threshold)
        best = max(best, hit / sum(masses))
    return best
