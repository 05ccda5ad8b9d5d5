"""Audits over many rounds: mixture log-likelihood ratios summed along one path of banks (paper, E.5)."""
