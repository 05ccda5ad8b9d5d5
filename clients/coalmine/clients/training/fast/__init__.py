"""The fast trainer: many small models at once, per-sample clipping without per-sample gradients. The door to torch.

**Start with** ``outer.py`` (why a layer's per-sample gradient norm needs no gradient), then ``layers.py`` (layers for
R models at once), ``dense.py``, ``ghost.py`` and ``opacus_engine.py`` (ways to the same sums), ``population.py`` (the
run).
"""
