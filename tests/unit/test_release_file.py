"""Releases on disk."""

import numpy as np
import pytest

from coalmine.protocol.bank import Commitment
from coalmine.protocol.errors import StorageError
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.release import Release
from coalmine.server.release_file import read_release, write_release

RELEASE = Release(3, np.array([0.25, -1e-17, 7.5]), Commitment("ab" * 32, 3), Mechanism(q=0.2, sigma=0.7), "protected")


def test_a_release_comes_back_bit_by_bit(tmp_path):
    write_release(RELEASE, tmp_path / "releases" / "round-4.parquet")
    back = read_release(tmp_path / "releases" / "round-4.parquet")
    assert back.histogram.tobytes() == RELEASE.histogram.tobytes()
    assert (back.round, back.commitment, back.mechanism, back.randomness) == (
        3,
        RELEASE.commitment,
        RELEASE.mechanism,
        "protected",
    )
    assert [path.name for path in (tmp_path / "releases").iterdir()] == ["round-4.parquet"]


def test_anything_else_is_refused_with_its_place(tmp_path):
    other = tmp_path / "other.parquet"
    for content in (b"", b"PAR1 and no more"):
        other.write_bytes(content)
        with pytest.raises(StorageError, match=r"other\.parquet: this is not a release"):
            read_release(other)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        write_release(RELEASE, tmp_path / "file" / "round-1.parquet")
