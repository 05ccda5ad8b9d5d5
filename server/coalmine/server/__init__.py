"""Coordination: banks, generators, commit-then-draw rounds, the noisy release."""
