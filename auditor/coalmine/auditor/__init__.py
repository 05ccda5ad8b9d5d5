"""The separate auditor: attacks, scores, bounds and what they say about a claim."""
