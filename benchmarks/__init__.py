"""One script per promise of speed. Ratios are taken within one run; nothing here is a test."""
