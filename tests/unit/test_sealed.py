"""Sealed arrays come back as they were, or not at all."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalmine.clients.training.progress import Progress
from coalmine.protocol.errors import StorageError
from coalmine.protocol.sealed import sealed, unsealed
from coalmine.server.training.standing import Standing

ARRAYS = {
    "step": np.array(4),
    "theta": np.arange(6.0).reshape(2, 3),
    "gone": np.array([True, False]),
    "none": np.zeros(0),
}


def packed(arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def opened(path):
    return unsealed(path, "the checkpoint", "start anew")


def test_what_was_sealed_comes_back(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(packed(sealed(ARRAYS)))
    found = opened(path)
    assert set(found) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)


@pytest.mark.parametrize(
    "change",
    [
        {"step": np.array(3)},
        {"step": np.array(4.0)},
        {"theta": np.arange(6.0).reshape(3, 2)},
        {"theta": np.arange(6.0).astype("<U3")},
        {"more": np.zeros(1)},
        {"none": np.zeros((0, 2))},
    ],
    ids=str,
)
def test_what_was_edited_is_refused(tmp_path, change):
    path = tmp_path / "a.npz"
    path.write_bytes(packed(sealed(ARRAYS) | change))
    with pytest.raises(StorageError, match="damaged, or was changed"):
        opened(path)
    without = sealed(ARRAYS)
    del without["theta"]
    path.write_bytes(packed(without))
    with pytest.raises(StorageError, match="damaged, or was changed"):
        opened(path)


@given(data=st.data())
def test_damage_anywhere_never_passes_for_other_contents(tmp_path_factory, data):
    whole = packed(sealed(ARRAYS))
    place = data.draw(st.integers(0, len(whole) - 1))
    cut = data.draw(st.booleans())
    damaged = (
        whole[:place]
        if cut
        else whole[:place] + bytes([whole[place] ^ data.draw(st.integers(1, 255))]) + whole[place + 1 :]
    )
    path = tmp_path_factory.mktemp("sealed") / "a.npz"
    path.write_bytes(damaged)
    try:
        found = opened(path)
    except StorageError:
        return
    assert all(np.array_equal(found[name], array) for name, array in ARRAYS.items()), "a byte that means nothing"


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"\x93NUMPY", packed({"theta": np.zeros(2)})], ids=["empty", "zip", "npy", "bare"]
)
@pytest.mark.parametrize("load", [Progress.load, Standing.load])
def test_a_checkpoint_that_is_none_is_said(tmp_path, content, load):
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(StorageError, match="the checkpoint"):
        load(path)
    with pytest.raises(StorageError, match="the checkpoint"):
        load(tmp_path / "never.npz")
