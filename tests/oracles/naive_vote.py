"""One user's vote in exact rational arithmetic, and the route by comparing every pair of distances."""

from fractions import Fraction
from itertools import pairwise
from math import isqrt


def route(record, candidates, k):
    """k nearest by exact squared distance, ties to the lowest index, and the smallest gap between different ones."""
    exact = [
        sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(record, c, strict=True)) for c in candidates
    ]
    order = sorted(range(len(exact)), key=lambda index: (exact[index], index))
    ranked = sorted(set(exact))
    gap = min((b - a for a, b in pairwise(ranked)), default=Fraction(1))
    return order[:k], gap


def within_clip(units, clip, bits):
    """Is the L2 norm of ``units / 2**bits`` at most ``clip``? In integers."""
    bound = Fraction(clip) * Fraction(2) ** bits
    return sum(int(unit) ** 2 for unit in units) <= bound**2


def clipped(counts, clip, bits, precision=200):
    """The true clipped vote in grid units as rationals, correct to 2**-precision relative."""
    total, squared = sum(counts), sum(count * count for count in counts)
    if total == 0:
        return [Fraction(0)] * len(counts)
    norm = Fraction(isqrt(squared << (2 * precision)), 1 << precision)
    scale = min(Fraction(1, total), Fraction(clip) / norm) * Fraction(2) ** bits
    return [count * scale for count in counts]
