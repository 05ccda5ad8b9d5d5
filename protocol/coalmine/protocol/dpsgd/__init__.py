"""DP-SGD with sample-signature filtering: the step, the filter and the claim in their plain form."""
