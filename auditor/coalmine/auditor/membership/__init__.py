"""Audits by shadow models: was this sample in the training data? Pure statistics on arrays of scores and logits."""
