import io
import math
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalmine.clients.training import built_in, images, partitions
from coalmine.clients.training.hamp import masked, soft_label
from coalmine.clients.training.models import Kind, ModelSpec
from coalmine.clients.training.plan import Augmentation, Hamp
from coalmine.clients.training.source import SourceSpec, samples
from coalmine.clients.training.table import MOST_CLASSES, table
from coalmine.clients.training.table_files import load
from coalmine.protocol.errors import DataError, ModelError, StudyError


def small(n=60, classes=5):
    rng = np.random.default_rng(0)
    return table(rng.random((n, 3)), np.arange(n) % classes, classes, user=np.arange(n) // 7, where="test")


def test_tables_are_checked():
    for x, y, classes, said in (
        ([[1.0], [np.nan]], [0, 1], 2, "row 2"),
        ([[1.0], [2.0]], [0, 2], 2, "labels 0 to 1"),
        ([[1.0], [2.0]], [0, -1], 2, "labels 0 to 1"),
        ([[1.0], [2.0]], [0, 0.5], 2, "whole number"),
        ([[1.0]], [0, 1], 2, "features of shape"),
        ([1.0, 2.0], [0, 1], 2, "features of shape"),
        ([["a"], ["b"]], [0, 1], 2, "needs numbers"),
        ([[1.0], [2.0]], ["a", "b"], 2, "whole numbers"),
        ([[1.0], [2.0]], [0, 0], None, "1 classes"),
        ([[1.0], [1e300]], [0, 1], 2, "row 2: a feature is not a finite"),
        ([[1.0], [2.0j]], [0, 1], 2, "features of type complex"),
        (np.zeros((2, 1), "m8[s]"), [0, 1], 2, "features of type timedelta"),
        (np.zeros((2, 1), "M8[s]"), [0, 1], 2, "features of type datetime"),
        ([[1.0], [2.0]], [0, 1j], 2, "labels of type complex"),
        ([[1.0], [2.0]], np.array([0, 1], "m8[s]"), 2, "labels of type timedelta"),
        ([[1.0], [2.0]], [0, np.nan], 2, "row 2: a label is not a whole number"),
        ([[1.0], [2.0]], [0, np.inf], None, "row 2: a label is not a whole number"),
        ([[1.0], [2.0]], [0, MOST_CLASSES], None, "row 2: a label is 10,000 or more"),
        ([[1.0], [2.0]], [0, 10**9], None, "row 2: a label is 10,000 or more"),
        ([[1.0], [2.0]], [0, 2**62], None, "row 2: a label is 10,000 or more"),
        ([[1.0], [2.0]], [0.0, 1e30], None, "row 2: a label is 10,000 or more"),
        ([[1.0], [2.0]], np.array([0, 2**64 - 1], np.uint64), 2, "row 2: a label is out of range"),
    ):
        with pytest.raises(DataError, match=said):
            table(x, y, classes, where="test")
    assert table([[1.0], [2.0]], [0, MOST_CLASSES - 1], where="test").classes == MOST_CLASSES


@pytest.mark.parametrize("column", ["group", "user"])
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.0, np.nan, 2.0], "row 2.*missing"),
        ([1.0, 2.0, np.inf], "row 3.*missing"),
        (np.array(["a", "b", None], object), "row 3.*missing"),
        (np.array(["a", [1], "b"], object), "row 2.*missing"),
        ([1j, 2j, 3j], "of type complex"),
        (np.array([1, 2, 3], "m8[s]"), "of type timedelta"),
        (np.array([1, 2, 3], "M8[s]"), "of type datetime"),
        ([1, 2], r"of shape \(2,\)"),
    ],
)
def test_every_sample_is_somebodys(column, values, said):
    with pytest.raises(DataError, match=said) as error:
        table(np.zeros((3, 1)), [0, 1, 0], where="test", **{column: values})
    assert column in str(error.value)


def test_owners_are_numbers_or_names():
    for values in (["b", "a", "b"], [b"b", b"\xe9", b"b"], [2.5, 1.0, 2.5], np.array(["b", "a", "b"], object)):
        user = table(np.zeros((3, 1)), [0, 1, 0], where="test", user=values).user
        assert user[0] == user[2] != user[1]
    assert table(np.zeros((2, 1)), [0, 1], where="test", user=[7, -3]).user.tolist() == [7, -3]


def test_views_and_losses_have_finite_sizes():
    for make, key in (
        (lambda: Augmentation(jitter=math.inf), "augmentation.jitter"),
        (lambda: Augmentation(jitter=math.nan), "augmentation.jitter"),
        (lambda: Augmentation(shift=math.inf), "augmentation.shift"),
        (lambda: Augmentation(views=0), "augmentation.views"),
        (lambda: Hamp(alpha=math.inf), "hamp.alpha"),
    ):
        with pytest.raises(StudyError, match="not allowed") as error:
            make()
        assert error.value.where == key


def test_added_rows_keep_the_ids_of_the_others():
    data = small()
    more = data.with_rows(np.zeros((2, 3)), [1, 4])
    assert len(more) == 62
    assert (more.x[:60] == data.x).all()
    assert more.user[-2:].tolist() == [-1, -1]
    with pytest.raises(DataError, match="shape"):
        data.with_rows(np.zeros((1, 4)), [0])
    with pytest.raises(DataError, match="out of range"):
        data.with_rows(np.zeros((1, 3)), [5])


def test_npz_files(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "a.npz",
        x_train=rng.random((4, 2)),
        y_train=[0, 1, 2, 0],
        group_train=[0, 0, 1, 0],
        x_test=rng.random((2, 2)),
        y_test=[0, 1],
    )
    train = load(tmp_path / "a.npz", part="train")
    assert (train.shape, train.classes, train.group.tolist()) == ((2,), 3, [0, 0, 1, 0])
    assert load(tmp_path / "a.npz", part="test", classes=3).classes == 3
    with pytest.raises(DataError, match="x_tset"):
        load(tmp_path / "a.npz", part="tset")
    (tmp_path / "b.npz").write_bytes(b"nonsense")
    np.savez(tmp_path / "c.npz", x=np.array([{}, {}], dtype=object), y=[0, 1])
    for name in ("b.npz", "c.npz"):
        with pytest.raises(DataError, match="not a readable"):
            load(tmp_path / name)
    with pytest.raises(DataError, match="no such file"):
        load(tmp_path / "d.npz")
    (tmp_path / "e.csv").write_text("1")
    with pytest.raises(DataError, match="not read"):
        load(tmp_path / "e.csv")


def archive(**arrays):
    written = io.BytesIO()
    np.savez(written, **arrays)
    return written.getvalue()


def patched(content, local, central, value):
    """With a byte of the first member's two headers changed."""
    changed = bytearray(content)
    changed[changed.find(b"PK\x03\x04") + local] = changed[changed.find(b"PK\x01\x02") + central] = value
    return bytes(changed)


def of_members(members):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return written.getvalue()


def bare_array(header):
    written = io.BytesIO()
    np.lib.format.write_array_header_1_0(written, header)
    return written.getvalue()


PLAIN = archive(x=np.zeros((6, 2)), y=np.arange(6) % 2)
SINGLE = bare_array({"descr": "<f4", "fortran_order": False, "shape": (0, 2)})
ENDLESS = bare_array({"descr": "<f4", "fortran_order": False, "shape": (10**12, 10**3)})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a readable npz"),
        (b"nonsense", "not a readable npz"),
        (PLAIN[: len(PLAIN) // 2], "not a readable npz"),
        (patched(PLAIN, 6, 8, 1), "not a readable npz"),
        (patched(PLAIN, 8, 10, 99), "not a readable npz"),
        (of_members({"x.npy": SINGLE.replace(b"'descr'", b"'de\ncr"), "y.npy": SINGLE}), "not a readable npz"),
        (SINGLE, "single array"),
        (of_members({"x.npy": ENDLESS, "y.npy": ENDLESS}), "more memory than there is"),
        (None, "no such file"),
        ("folder", "a folder"),
    ],
    ids=["empty", "text", "half", "encrypted", "compression", "header", "npy", "endless", "missing", "folder"],
)
def test_npz_files_that_cannot_be_read(tmp_path, content, said):
    path = tmp_path / "a.npz"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    for read in (lambda: load(path), lambda: samples(SourceSpec(str(path)))):
        with pytest.raises(DataError, match=said) as error:
            read()
        assert (error.value.exit_code, error.value.where) == (2, str(path))


def test_a_path_that_no_system_takes(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        load(tmp_path / ("n" * 5000 + ".npz"))


def test_training_and_test_samples_have_the_same_features(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(
        archive(x_train=np.zeros((6, 3)), y_train=np.arange(6) % 2, x_test=np.zeros((2, 2)), y_test=[0, 1])
    )
    with pytest.raises(DataError, match=r"shape \(3,\) and test samples of shape \(2,\)"):
        samples(SourceSpec(str(path)))


@pytest.mark.parametrize("given", [{"scale": math.inf}, {"scale": math.nan}, {"scale": -1.0}, {"minority": math.inf}])
def test_settings_of_the_samples_are_finite(given):
    with pytest.raises(StudyError, match="not allowed") as error:
        SourceSpec(**given)
    assert error.value.where == f"training.data.{next(iter(given))}"


def test_parquet_files(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1.0, 2.0], "b": [3, 4], "label": [0, 1], "user": ["x", "y"]}), path)
    data = load(path)
    assert data.x.tolist() == [[1, 3], [2, 4]]
    assert data.user.tolist() == [0, 1]
    pq.write_table(pa.table({"features": [[1.0, 2.0], [3.0, 4.0]], "label": [0, 1]}), path)
    assert load(path).x.tolist() == [[1, 2], [3, 4]]
    for columns, said in (
        ({"features": [[1.0], [2.0, 3.0]], "label": [0, 1]}, "different lengths"),
        ({"a": ["x", "y"], "label": [0, 1]}, "needs numbers"),
        ({"a": [1, 2], "lable": [0, 1]}, "did you mean 'lable'"),
        ({"a": [1.0, None], "label": [0, 1]}, "not a finite number"),
        ({"features": [[[1.0]], [[1.0, 2.0]]], "label": [0, 1]}, "different lengths"),
        ({"a": [1, 2], "label": [0, 1], "user": [[7], [8]]}, "row 1: a sample's user"),
        ({"a": [1, 2], "label": [0, 1], "user": ["u", None]}, "row 2: a sample's user"),
        ({"a": [1, 2], "label": [0, 1], "group": [0, None]}, "row 2: a sample's group"),
    ):
        pq.write_table(pa.table(columns), path)
        with pytest.raises(DataError, match=said):
            load(path)
    columns = [pa.array([1, 2]), pa.array([3, 4]), pa.array([0, 1])]
    pq.write_table(pa.Table.from_arrays(columns, ["a", "a", "label"]), path)
    with pytest.raises(DataError, match="'a' is there twice"):
        load(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(DataError, match="not a readable"):
        load(path)


def test_digits_and_their_colours():
    plain = built_in.digits()
    assert (len(plain), plain.shape, plain.classes) == (1797, (1, 8, 8), 10)
    assert (plain.x.min(), plain.x.max()) == (0, 1)
    for share in (0.0, 0.05, 0.25, 0.5):
        data = built_in.coloured(plain, share, np.random.default_rng(0))
        for label in (0, 1):
            of = data.y == label
            assert data.group[of].sum() == round(share * of.sum())
            red = data.x[of, 0].sum(axis=(1, 2)) > 0
            assert (red == ((data.group[of] == 1) == (label == 1))).all()
        assert (data.x.sum(axis=1) == plain.x[:, 0]).all()
        assert (data.y == plain.y % 2).all()
    with pytest.raises(DataError, match="minority"):
        built_in.coloured(plain, 0.6, np.random.default_rng(0))
    with pytest.raises(DataError, match="samples of shape"):
        built_in.coloured(data, 0.1, np.random.default_rng(0))


def test_purchases_look_like_their_class():
    data = built_in.purchases(2000, np.random.default_rng(0), features=50, classes=4, flip=0.1)
    assert set(np.unique(data.x)) == {0.0, 1.0}
    centres = np.stack([data.x[data.y == label].mean(axis=0) for label in range(4)])
    assert np.abs(np.abs(centres - 0.5) - 0.4).max() < 0.1
    nearest = np.argmin(((data.x[:, None] - centres.round()) ** 2).sum(axis=2), axis=1)
    assert (nearest == data.y).mean() > 0.95
    with pytest.raises(DataError, match="purchases"):
        built_in.purchases(5, np.random.default_rng(0), flip=0.7)


def test_images():
    grey = table(np.arange(2 * 4 * 4).reshape(2, 4, 4), [0, 1], 2, where="test")
    data = images.as_images(grey, 2.0)
    assert data.shape == (1, 4, 4)
    pooled = images.average_pooled(data, 2)
    assert pooled.x[0, 0].tolist() == [[1.25, 2.25], [5.25, 6.25]]
    assert images.standardised(pooled, 1.25, 2.0).x[0, 0, 0].tolist() == [0.0, 0.5]
    for wrong in (
        lambda: images.average_pooled(data, 3),
        lambda: images.standardised(data, 0, 0),
        lambda: images.as_images(small()),
        lambda: images.as_images(grey, 1e300),
        lambda: images.as_images(grey, 1e-300),
        lambda: images.as_images(grey, 1e-38),
    ):
        with pytest.raises(DataError, match="images"):
            wrong()


@given(st.integers(1, 90), st.integers(0, 2**32 - 1), st.sampled_from([0.001, 0.1, 1.0, 100.0]))
def test_every_sample_has_one_holder(clients, seed, alpha):
    data, rng = small(), np.random.default_rng(seed)
    for parts in (
        partitions.iid(data, clients, rng),
        partitions.dirichlet(data, clients, alpha, rng, allow_empty=True),
        partitions.by_class(data, clients, min(5, 5 // clients + 1), rng),
    ):
        assert len(parts) == clients
        assert np.sort(np.concatenate(parts)).tolist() == list(range(60))


def test_partitions_have_their_shape():
    data, rng = small(600), np.random.default_rng(0)
    sizes = [len(part) for part in partitions.iid(data, 7, rng)]
    assert max(sizes) - min(sizes) <= 1
    assert [data.user[part].tolist() for part in partitions.by_user(data)] == [
        [user] * (data.user == user).sum() for user in range(86)
    ]
    assert all(len(set(data.y[part])) == 2 for part in partitions.by_class(data, 10, 2, rng))

    def largest_share(alpha):
        parts = partitions.dirichlet(data, 5, alpha, rng, allow_empty=True)
        return np.mean(
            [np.bincount(data.y[part], minlength=5).max() / max(1, len(part)) for part in parts if len(part)]
        )

    assert largest_share(1000.0) < 0.3 < 0.5 < largest_share(0.05)


def test_partitions_that_cannot_be_are_refused():
    data, rng = small(), np.random.default_rng(0)
    with pytest.raises(DataError, match="would hold no sample"):
        partitions.dirichlet(data, 40, 0.01, rng)
    with pytest.raises(DataError, match="cannot hold all"):
        partitions.by_class(data, 2, 2, rng)
    with pytest.raises(DataError, match="classes"):
        partitions.by_class(data, 2, 6, rng)
    with pytest.raises(DataError, match="clients"):
        partitions.iid(data, 0, rng)
    with pytest.raises(DataError, match="alpha"):
        partitions.dirichlet(data, 2, 0.0, rng)
    with pytest.raises(DataError, match="name no users"):
        partitions.by_user(table(data.x, data.y, 5, where="test"))


def test_soft_labels_have_the_entropy_asked_for_and_masking_keeps_the_order_alone():
    for gamma in (0.2, 0.5, 0.9):
        p, rest = soft_label(10, gamma)
        assert p > rest
        assert p + 9 * rest == pytest.approx(1)
        assert -(p * np.log(p) + 9 * rest * np.log(rest)) == pytest.approx(gamma * np.log(10))
    rng = np.random.default_rng(0)
    logits, reference = 9 * rng.standard_normal((40, 6)), rng.standard_normal((40, 6))
    shown = masked(logits, reference)
    assert (np.argsort(shown, axis=1) == np.argsort(logits, axis=1)).all()
    assert np.allclose(shown, masked(3 * logits + 1, reference))
    assert np.allclose(shown.sum(axis=1), 1)


def test_models_that_cannot_read_their_samples_are_refused():
    for wrong in (
        {"kind": Kind.CNN, "shape": (64,)},
        {"kind": Kind.WRN16, "shape": (1, 4, 4)},
        {"kind": Kind.MLP, "shape": (4,), "hidden": ()},
        {"kind": Kind.MLP, "shape": ()},
        {"kind": Kind.LOGISTIC, "shape": (4,), "classes": 1},
        {"kind": Kind.CNN, "shape": (1, 28, 28), "width": 0},
    ):
        with pytest.raises(ModelError, match="model"):
            ModelSpec(**{"classes": 10, **wrong})


@pytest.mark.parametrize("name", ["user_id", "id", "userID", "Client", "patient"])
def test_a_column_that_says_who_is_no_feature(tmp_path, name):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"f0": [0.1, 0.2], "width": [1, 2], name: [7, 8], "label": [0, 1]}), path)
    with pytest.raises(DataError, match=f"{name}.*identifier"):
        load(path)


def test_words_that_end_alike_are_features(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"valid": [0.1, 0.2], "fluid": [1, 2], "label": [0, 1]}), path)
    assert load(path).x.shape == (2, 2)
