"""The server of federated DP-SGD: sums, one Gaussian, a step. It needs no samples and no network."""
