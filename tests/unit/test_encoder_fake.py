"""The fake encoder keeps the port's promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalmine.clients.encoder.fake import HashEncoder


@given(st.lists(st.text(max_size=30), max_size=20), st.integers(2, 40))
def test_unit_vectors_that_depend_on_the_text_alone(texts, dimension):
    encoder = HashEncoder(dimension)
    vectors = encoder.encode(texts)
    assert vectors.shape == (len(texts), dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    alone = [encoder.encode([text])[0] for text in texts]
    np.testing.assert_array_equal(vectors, np.array(alone, dtype=np.float32).reshape(vectors.shape))


def test_texts_that_share_words_are_closer_and_no_two_tie():
    a, b, c, d = HashEncoder().encode(
        ["the ship left the harbour", "the ship left harbour", "seven quiet owls", "owls seven quiet"]
    )
    assert a @ b > 0.8 > 0.5 > abs(a @ c)
    assert 0.9 < c @ d < 1 - 1e-4


def test_one_dimension_is_refused():
    with pytest.raises(ValueError, match="at least 2"):
        HashEncoder(1)


def test_two_dimensions_have_two_ids():
    assert HashEncoder(8).id != HashEncoder(16).id
