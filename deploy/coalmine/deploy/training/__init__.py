"""Studies of federated DP-SGD: train one model through the Flower apps, audit many shadow models of the same plan."""
