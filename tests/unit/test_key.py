"""The participation key: made once, for its owner alone."""

import os
import stat

import pytest

from coalmine.clients.key import protected
from coalmine.protocol.errors import StorageError


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_missing_key_is_made_for_its_owner_alone_and_kept(tmp_path, umask):
    path = tmp_path / "secrets" / "participation.key"
    before = os.umask(umask)
    try:
        first = protected(path)
    finally:
        os.umask(before)
    assert mode(path) == 0o600
    assert len(first.participation_key) == 32
    assert path.read_bytes() == first.participation_key
    assert protected(path) == first


def test_two_keys_differ(tmp_path):
    assert protected(tmp_path / "a") != protected(tmp_path / "b")


@pytest.mark.parametrize("loose", [0o640, 0o604, 0o620, 0o602, 0o644, 0o610])
def test_a_key_that_others_can_reach_is_refused(tmp_path, loose):
    path = tmp_path / "key"
    protected(path)
    path.chmod(loose)
    with pytest.raises(StorageError, match=r"key: others may read this secret key \(chmod 600\)"):
        protected(path)
    assert mode(path) == loose


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_key_of_another_length_is_refused_and_not_shown(tmp_path, length):
    path = tmp_path / "key"
    path.write_bytes(b"s" * length)
    path.chmod(0o600)
    with pytest.raises(StorageError, match=f"32 bytes, this file {length}") as caught:
        protected(path)
    assert "sss" not in str(caught.value)


def test_a_place_that_cannot_hold_a_key_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir(mode=0o700)
    for path in (tmp_path / "file" / "key", tmp_path / "folder"):
        with pytest.raises(StorageError, match="the secret key cannot be used") as caught:
            protected(path)
        assert str(path) in str(caught.value)
