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


def edited(change, without=()):
    """What somebody gets who opens a sealed file, changes it and packs it again."""
    with np.load(io.BytesIO(sealed(ARRAYS))) as file:
        arrays = {name: file[name] for name in file.files if name not in without}
    out = io.BytesIO()
    np.savez(out, **(arrays | change))
    return out.getvalue()


def opened(packed):
    return unsealed(lambda: packed, "the checkpoint", "here", "start anew")


def test_what_was_sealed_comes_back():
    for packed in (sealed(ARRAYS), edited({})):
        found = opened(packed)
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
def test_what_was_edited_is_refused(change):
    with pytest.raises(StorageError, match="damaged, or was changed"):
        opened(edited(change))


@pytest.mark.parametrize("without", ["theta", "seal"])
def test_what_lacks_something_is_refused(without):
    with pytest.raises(StorageError, match="damaged, or was changed"):
        opened(edited({}, without))


@given(data=st.data())
def test_damage_anywhere_never_passes_for_other_contents(data):
    whole = sealed(ARRAYS)
    place = data.draw(st.integers(0, len(whole) - 1))
    rest = (
        b"" if data.draw(st.booleans()) else bytes([whole[place] ^ data.draw(st.integers(1, 255))]) + whole[place + 1 :]
    )
    try:
        found = opened(whole[:place] + rest)
    except StorageError:
        return
    assert all(np.array_equal(found[name], array) for name, array in ARRAYS.items()), "a byte that means nothing"


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"\x93NUMPY", edited({}, ("seal",))], ids=["empty", "zip", "npy", "bare"]
)
@pytest.mark.parametrize("load", [Progress.load, Standing.load])
def test_a_checkpoint_that_is_none_is_said(tmp_path, content, load):
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(StorageError, match="the checkpoint"):
        load(path)
    with pytest.raises(StorageError, match="the checkpoint"):
        load(tmp_path / "never.npz")
