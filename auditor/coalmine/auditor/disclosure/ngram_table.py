"""The hash table under `NgramIndex`, compiled.

Open addressing with linear probing over numbered entries. Hashes are polynomial, rolling along the text for the
shortest length and growing word by word for the longer ones. A hash only says where to look: two n-grams are one when
their words are equal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.compiled import compiled

_BASE = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)


class Table(NamedTuple):
    """Distinct n-grams of the indexed words.

    Attributes:
        slots: (a power of two,) entry in each slot, or -1. Longer than there are entries.
        hashes, first, lengths: (room,) of each entry its hash, where it begins first and its words.
    """

    slots: NDArray[np.int32]
    hashes: NDArray[np.uint64]
    first: NDArray[np.int32]
    lengths: NDArray[np.int16]


class Chains(NamedTuple):
    """All places where an n-gram of the shortest length begins.

    Attributes:
        latest: (shortest entries,) last place of each entry; -2 - place once it has been met; -1 once its longer
            n-grams are indexed.
        earlier: (w,) for each place the one before it with the same n-gram, or -1.
    """

    latest: NDArray[np.int32]
    earlier: NDArray[np.int32]


@compiled()
def _mixed(number):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every bit moves every bit."""
    number = (number ^ (number >> _SHIFT_1)) * _MIX_1
    number = (number ^ (number >> _SHIFT_2)) * _MIX_2
    return number ^ (number >> _SHIFT_3)


@compiled()
def _grown(rolling, word):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    return rolling * _BASE + _mixed(np.uint64(word))


@compiled()
def _power(exponent):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    power = np.uint64(1)
    for _ in range(exponent):
        power *= _BASE
    return power


@compiled()
def _whole(text, start, length):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    rolling = np.uint64(0)
    for i in range(length):
        rolling = _grown(rolling, text[start + i])
    return rolling


@compiled()
def _rolled(rolling, run, text, end, length, leaving):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """The hash of the ``length`` words up to ``end``, given that of those up to the word before.

    ``run`` counts the words up to ``end`` since the last 0, ``leaving`` is the weight of the word that leaves.
    """
    rolling = _grown(rolling, text[end])
    if run > length:
        rolling -= leaving * _mixed(np.uint64(text[end - length]))
    return rolling


@compiled()
def count_whole(words, length):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Places where ``length`` words without a 0 begin."""
    run = total = 0
    for word in words:
        run = run + 1 if word else 0
        total += run >= length
    return total


@compiled()
def _find(key, text, start, length, words, table):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """The entry whose words are ``text[start : start + length]``, or -1 - slot with the free slot."""
    last = np.uint64(len(table.slots) - 1)
    slot = key & last
    while table.slots[slot] >= 0:
        entry = table.slots[slot]
        if table.hashes[entry] == key and table.lengths[entry] == length:
            same = True
            for i in range(length):
                if words[table.first[entry] + i] != text[start + i]:
                    same = False
                    break
            if same:
                return np.int64(entry)
        slot = (slot + np.uint64(1)) & last
    return -1 - np.int64(slot)


@compiled()
def _enter(key, start, length, words, table, entries):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """The entry of indexed words; a new one is numbered ``entries``."""
    entry = _find(key, words, start, length, words, table)
    if entry < 0:
        table.slots[-1 - entry] = entries
        entry = entries
        table.hashes[entry], table.first[entry], table.lengths[entry] = key, start, length
    elif table.first[entry] > start:
        table.first[entry] = start
    return entry


@compiled()
def place(hashes, entries, slots):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Fill empty ``slots`` with the first ``entries`` entries, which are distinct."""
    last = np.uint64(len(slots) - 1)
    for entry in range(entries):
        slot = hashes[entry] & last
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & last
        slots[slot] = entry


@compiled()
def index_shortest(words, length, mask, chains, table):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Enter the n-grams of the shortest length and link their places. Returns the number of entries."""
    entries = run = 0
    rolling, leaving = np.uint64(0), _power(length)
    for end in range(len(words)):
        if words[end] == 0:
            run, rolling = 0, np.uint64(0)
            continue
        run += 1
        rolling = _rolled(rolling, run, words, end, length, leaving)
        if run < length:
            continue
        start = end - length + 1
        entry = _enter(_mixed(rolling) & mask, start, length, words, table, entries)
        if entry == entries:
            entries += 1
        else:
            chains.earlier[start] = chains.latest[entry]
        chains.latest[entry] = start
    return entries


@compiled()
def meet(text, met, length, mask, words, chains, table):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write into ``met`` which entry of the shortest length begins at each place of ``text``, or -1.

    Entries met for the first time are marked in ``chains.latest``. Returns at how many indexed places they begin.
    """
    places = run = 0
    rolling, leaving = np.uint64(0), _power(length)
    met[:] = -1
    for end in range(len(text)):
        if text[end] == 0:
            run, rolling = 0, np.uint64(0)
            continue
        run += 1
        rolling = _rolled(rolling, run, text, end, length, leaving)
        if run < length:
            continue
        start = end - length + 1
        entry = _find(_mixed(rolling) & mask, text, start, length, words, table)
        if entry < 0:
            continue
        met[start] = entry
        if chains.latest[entry] >= 0:
            at = chains.latest[entry]
            chains.latest[entry] = -2 - at
            while at >= 0:
                places += 1
                at = chains.earlier[at]
    return places


@compiled()
def _index_longer(at, shortest, longest, mask, words, table, entries):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    rolling = _whole(words, at, shortest)
    for length in range(shortest + 1, longest + 1):
        end = at + length - 1
        if end >= len(words) or words[end] == 0:
            break
        rolling = _grown(rolling, words[end])
        if _enter(_mixed(rolling) & mask, at, length, words, table, entries) == entries:
            entries += 1
    return entries


@compiled()
def _hold(holders, user):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for i in range(len(holders)):
        if holders[i] == user:
            break
        if holders[i] < 0:
            holders[i] = user
            break


@compiled()
def note(text, users, met, holders, shortest, longest, mask, words, chains, table, entries):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write the user of each place of ``text`` into the ``holders`` of the n-grams that begin there.

    First the longer n-grams of marked entries are entered. Returns the number of entries.
    """
    for start in range(len(text)):
        entry = met[start]
        if entry < 0:
            continue
        if chains.latest[entry] < -1:
            at = -2 - chains.latest[entry]
            chains.latest[entry] = -1
            while at >= 0:
                entries = _index_longer(at, shortest, longest, mask, words, table, entries)
                at = chains.earlier[at]
        _hold(holders[entry], users[start])
        rolling = _whole(text, start, shortest)
        for length in range(shortest + 1, longest + 1):
            end = start + length - 1
            if end >= len(text) or text[end] == 0:
                break
            rolling = _grown(rolling, text[end])
            longer = _find(_mixed(rolling) & mask, text, start, length, words, table)
            if longer < 0:
                break
            _hold(holders[longer], users[start])
    return entries
