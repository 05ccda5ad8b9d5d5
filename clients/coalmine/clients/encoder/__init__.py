"""From texts to unit vectors: sentence-transformers behind the `Encoder` port, a disk cache, and a fake for tests."""
