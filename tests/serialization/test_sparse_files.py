"""Sparse tensors in files, ours and torch's, in pickles and copies; how they print and are made."""

import copy
import io
import pickle

import pytest

import tensorplug as tp

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")  # torch says so once per process


def tensors(lib):
    where, values = lib.tensor([[0, 1, 1], [2, 0, 2]]), lib.tensor([3.0, 4.0, 5.0])
    coo = lib.sparse_coo_tensor(where, values, (2, 3))
    return {
        "coo": coo,
        "coalesced": coo.coalesce(),
        "csr": coo.to_sparse_csr(),
        "nothing": lib.sparse_coo_tensor((2, 3)),
        "hybrid": lib.sparse_coo_tensor(where[:1], lib.ones(3, 2), (2, 2)),
        "float64": coo.double(),
        "int64": coo.long(),
        "many": lib.sparse_coo_tensor(lib.arange(60).reshape(2, 30) % 7, lib.arange(30.0), (7, 7)),
        "csr float64": coo.to_sparse_csr().double(),
    }


NAMES = tuple(tensors(tp))


def shown(tensor, name):
    """What is printed; where a dtype is named, whose name is longer here, without the line breaks."""
    text = repr(tensor).replace("tensorplug.", "torch.")
    return text.split() if "float64" in name else text


@pytest.mark.parametrize("name", NAMES)
def test_they_print_as_in_torch(name):
    torch = pytest.importorskip("torch", reason="torch says how tensors print")
    assert shown(tensors(tp)[name], name) == shown(tensors(torch)[name], name)


@pytest.mark.parametrize("name", ["coo", "csr", "csr float64"])
def test_a_leaf_prints_as_in_torch(name):
    torch = pytest.importorskip("torch", reason="torch says how tensors print")
    ours, theirs = (tensors(lib)[name].requires_grad_() for lib in (tp, torch))
    assert shown(ours, name) == shown(theirs, name)


@pytest.mark.parametrize("archive", [True, False])
@pytest.mark.parametrize(("writer", "reader"), [("tp", "tp"), ("torch", "tp"), ("tp", "torch")])
def test_files(writer, reader, archive):
    torch = pytest.importorskip("torch") if "torch" in (writer, reader) else None
    libs = {"tp": tp, "torch": torch}
    file = io.BytesIO()
    libs[writer].save(tensors(libs[writer]), file, _use_new_zipfile_serialization=archive)
    file.seek(0)
    read = libs[reader].load(file)
    for name, tensor in tensors(libs[reader]).items():
        assert repr(read[name]) == repr(tensor)
        assert read[name].layout is tensor.layout
    assert read["coalesced"].is_coalesced()
    assert not read["coo"].is_coalesced()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies(name, again):
    tensor = tensors(tp)[name]
    tensor.note = "kept"
    if tensor.is_floating_point():
        tensor.requires_grad_()
    made = again(tensor)
    assert repr(made) == repr(tensor)
    assert made.note == "kept"
    assert made.layout is tensor.layout


@pytest.mark.parametrize("name", NAMES)
def test_read_to_meta(name):
    file = io.BytesIO()
    tensor = tensors(tp)[name]
    tp.save(tensor, file)
    file.seek(0)
    read = tp.load(file, map_location="meta")
    assert (read.layout, read.dtype, read.shape) == (tensor.layout, tensor.dtype, tensor.shape)
    assert read.is_meta


def test_a_damaged_file_is_refused():
    file = io.BytesIO()
    x = tp.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [1.0, 2.0, 3.0], (2, 3))
    x.col_indices()[0] = 7
    tp.save(x, file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="from 0 to 7, ncols=3"):
        tp.load(file)


def test_layouts_are_pickled_as_themselves():
    for layout in (tp.sparse_coo, tp.sparse_csr, tp.strided):
        assert pickle.loads(pickle.dumps(layout)) is layout


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: tp.sparse_coo_tensor([[0, 1]], [1.0]), "same nnz"),
        (lambda: tp.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (2,)), "size is 2 but found index 5"),
        (lambda: tp.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (2,)), "negative index -1"),
        (lambda: tp.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2, 2)), "len.size. = 2"),
        (lambda: tp.sparse_coo_tensor([[0]], tp.ones(1, 2), (2, 3)), "incorrect size"),
        (lambda: tp.sparse_coo_tensor([0, 1], [1.0, 2.0]), "sparse_dim x nnz"),
        (
            lambda: tp.sparse_csr_tensor([0, 2], [0, 3], [1.0, 2.0], (1, 3)),
            "0 <= col_indices < ncols.*to 3",
        ),
        (
            lambda: tp.sparse_csr_tensor([0, 3], [0, 1], [1.0, 2.0], (1, 3)),
            "== nnz. is not satisfied: got 3",
        ),
        (lambda: tp.sparse_csr_tensor([0, 2, 1, 2], [0, 1], [1.0, 2.0]), "must not decrease"),
        (lambda: tp.sparse_csr_tensor([0, 2], [0], [1.0, 2.0]), r"must be equal to nnz \(=2\)"),
        (lambda: tp.sparse_csr_tensor([0, 1], [0], [1.0], (2, 2)), r"number of rows \+ 1 \(=3\)"),
        (lambda: tp.ones(2).to_sparse_csr(), "expected a matrix"),
        (lambda: tp.ones(2).to_sparse(layout="sparse_csc"), "no tensors of layout"),
        (lambda: tp.ones(2).coalesce(), "expected sparse coordinate tensor layout but got Strided"),
        (lambda: tp.ones(2).values(), "values expected sparse tensor layout"),
        (lambda: tensors(tp)["csr"].indices(), "expected sparse coordinate tensor layout"),
        (lambda: tensors(tp)["coo"].crow_indices(), "expected sparse row compressed"),
        (lambda: tensors(tp)["coo"].values(), "uncoalesced"),
        (lambda: tensors(tp)["coo"].nbytes, "not defined for sparse tensors"),
        (lambda: tensors(tp)["coo"].as_subclass(tp.nn.Parameter), "cannot be a Parameter"),
    ],
)
def test_what_does_not_fit_is_refused(call, match):
    with pytest.raises((RuntimeError, TypeError, NotImplementedError), match=match):
        call()
