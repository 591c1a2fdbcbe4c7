"""An int is one wherever it comes from, Python, NumPy or a tensor without dimensions; a real number never is.

Of functions that take one int or several, and of those that read sizes outside of the ops' rules.
"""

import numpy as np
import pytest

import tensorplug as tp

F = tp.nn.functional
MATRIX, SIGNAL, IMAGE = tp.arange(6.0).reshape(2, 3), tp.ones(1, 1, 4), tp.ones(1, 1, 4, 4)
KINDS = {"numpy": np.int64, "tensor": tp.tensor, "int32": lambda n: tp.tensor(n, dtype=tp.int32)}

#: Of one int, which torch takes of each kind.
SINGLE = {
    "roll": lambda one: MATRIX.roll(one),
    "roll dims": lambda one: MATRIX.roll(one, one),
    "movedim": lambda one: MATRIX.movedim(one, 0),
    "movedim to": lambda one: MATRIX.movedim(0, one),
    "moveaxis": lambda one: tp.moveaxis(MATRIX, one, 0),
    "fftshift": lambda one: tp.fft.fftshift(MATRIX, one),
    "ifftshift": lambda one: tp.fft.ifftshift(MATRIX, one),
    "linalg.norm": lambda one: tp.linalg.norm(MATRIX, dim=one),
    "linalg.vector_norm": lambda one: tp.linalg.vector_norm(MATRIX, dim=one),
    "LayerNorm": lambda one: tp.nn.LayerNorm(one)(tp.ones(2, 1)),
    "RMSNorm": lambda one: tp.nn.RMSNorm(one)(tp.ones(2, 1)),
    "sum": lambda one: MATRIX.sum(one),
    "flatten": lambda one: MATRIX.flatten(0, one),
    "zeros": lambda one: tp.zeros(one),
    "slice": lambda one: MATRIX[one:],
    "max_pool1d": lambda one: F.max_pool1d(SIGNAL, one),
    "conv1d": lambda one: F.conv1d(SIGNAL, tp.ones(1, 1, 2), padding=one),
    "sparse_coo_tensor": lambda one: tp.sparse_coo_tensor([[0]], [1.0], (one,)).to_dense(),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("call", SINGLE.values(), ids=SINGLE)
def test_an_int_of_any_kind(call, kind):
    assert call(kind(1)).tolist() == call(1).tolist()


@pytest.mark.parametrize("number", [1.5, 2.0, 1j])
@pytest.mark.parametrize("call", SINGLE.values(), ids=SINGLE)
def test_no_other_number_is_one(call, number):
    with pytest.raises(TypeError):
        call(tp.tensor(number))


#: Sizes are not rounded: 2.7 is no 2.
SIZES = {
    "sparse_coo_tensor": lambda n: tp.sparse_coo_tensor([[0]], [1.0], (n,)),
    "sparse_csr_tensor": lambda n: tp.sparse_csr_tensor([0, 1], [0], [1.0], (n, 1)),
    "sparse_resize_": lambda n: tp.eye(2).to_sparse().sparse_resize_((n, 3), 2, 0),
    "max_pool2d": lambda n: F.max_pool2d(IMAGE, (n, 2)),
    "avg_pool2d": lambda n: F.avg_pool2d(IMAGE, n),
    "conv2d": lambda n: F.conv2d(IMAGE, tp.ones(1, 1, 2, 2), stride=n),
    "unfold": lambda n: F.unfold(IMAGE, n),
    "fold": lambda n: F.fold(tp.ones(1, 4, 4), n, 2, stride=2),
    "interpolate": lambda n: F.interpolate(SIGNAL, n),
    "slice to": lambda n: MATRIX[:n],
    "written slice": lambda n: MATRIX.clone().__setitem__(slice(n, None), 0.0),
    "MaxPool2d": lambda n: tp.nn.MaxPool2d(n)(IMAGE),
}


@pytest.mark.parametrize("number", [2.7, 2.0, tp.tensor(2.7), tp.tensor(2.0), "2"])
@pytest.mark.parametrize("call", SIZES.values(), ids=SIZES)
def test_sizes_are_whole(call, number):
    with pytest.raises(TypeError):
        call(number)


#: Of one int, or of a size, for which torch takes no tensor of bool.
NO_TRUTH = {
    "zeros": lambda one: tp.zeros(one),
    "zeros of several": lambda one: tp.zeros(2, one),
    "zeros of a tuple": lambda one: tp.zeros((one, 2)),
    "ones": lambda one: tp.ones(one),
    "empty": lambda one: tp.empty(one),
    "full": lambda one: tp.full((one,), 2.0),
    "rand": lambda one: tp.rand(one),
    "randint": lambda one: tp.randint(5, (one,)),
    "new_zeros": lambda one: MATRIX.new_zeros(one),
    "view": lambda one: MATRIX.view(one, 6),
    "reshape": lambda one: MATRIX.reshape(one, 6),
    "expand": lambda one: tp.ones(1).expand(one),
    "broadcast_to": lambda one: tp.ones(1).broadcast_to((one,)),
    "repeat": lambda one: MATRIX.repeat(one, 1),
    "resize_": lambda one: tp.ones(2).resize_(one),
    "as_strided": lambda one: tp.ones(2).as_strided((one,), (1,)),
    "pad": lambda one: F.pad(MATRIX, (one, one)),
    "eye": lambda one: tp.eye(one),
    "linspace": lambda one: tp.linspace(0, 1, one),
    "hann_window": lambda one: tp.hann_window(one),
    "narrow": lambda one: MATRIX.narrow(0, 0, one),
    "select": lambda one: MATRIX.select(0, one),
    "transpose": lambda one: MATRIX.transpose(one, 0),
    "unsqueeze": lambda one: MATRIX.unsqueeze(one),
    "chunk": lambda one: MATRIX.chunk(one),
    "topk": lambda one: MATRIX.topk(one),
    "tril": lambda one: MATRIX.tril(one),
    "softmax": lambda one: MATRIX.softmax(one),
    "matrix_power": lambda one: tp.linalg.matrix_power(tp.eye(2), one),
    "multinomial": lambda one: tp.multinomial(tp.ones(3), one),
}


@pytest.mark.parametrize("name", NO_TRUTH)
def test_tensors_of_bool_are_no_ints(name):
    one = tp.tensor(1)
    for kind in ("new", "known"):  # a call alike may have been recorded
        with pytest.raises(TypeError, match="int"):
            NO_TRUTH[name](tp.tensor(True))
        if kind == "new":
            NO_TRUTH[name](one)
