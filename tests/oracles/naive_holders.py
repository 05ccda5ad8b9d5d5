"""Which features of the synthetic output exactly k private users hold: sets, and nothing clever."""


def ngrams(text, n_min, n_max):
    tokens = text.split()
    return {tuple(tokens[i : i + n]) for n in range(n_min, n_max + 1) for i in range(len(tokens) - n + 1)}


def held_by(records, outputs, extract, k):
    """{feature: (users, first synthetic record)}."""
    holders, first = {}, {}
    for index, text in enumerate(outputs):
        for feature in extract(text):
            first.setdefault(feature, index)
    for user, text in records:
        for feature in extract(text):
            holders.setdefault(feature, set()).add(user)
    return {
        feature: (tuple(sorted(holders[feature])), first[feature])
        for feature in first
        if len(holders.get(feature, ())) == k
    }
