"""The disclosure audit of files: train, holdout, synthetic."""
