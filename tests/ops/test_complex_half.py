"""complex32: pairs of halves, which memory is kept in and pointwise ops compute in complex64."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.device.dtypes import ALL_DTYPES
from tensorplug.core.dispatch import registered_ops

torch: Any = pytest.importorskip("torch", reason="torch is the reference of these tests")

VALUES = [[1 + 2j, 3 - 4j, 0.1j], [-0.3, 0.0, 7e4 + 1j]]


def both(compute: Callable[[Any, Any], Any]) -> None:
    """Compare what a function of a library and of one of its tensors returns, to the last digit."""
    results = []
    for library in (tp, torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch calls all of it experimental
            result = compute(library, library.tensor(VALUES, dtype=library.complex32))
            name = str(result.dtype).rpartition(".")[2]
            numbers = np.array(result.detach().tolist())
        results.append((name, tuple(result.shape), numbers))
    ours, theirs = results
    assert ours[:2] == theirs[:2]
    np.testing.assert_array_equal(ours[2], theirs[2])


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "tensor": lambda library, x: x,
    "add": lambda library, x: x[0] + x[0],
    "nonzero of one": lambda library, x: library.nonzero(x[0, 0]),
    "add_number": lambda library, x: x + (0.1 + 2j),
    "add_": lambda library, x: x.add_(1),
    "sub": lambda library, x: x - x * 2,
    "mul": lambda library, x: x * x,
    "mul_": lambda library, x: x.mul_(2),
    "neg": lambda library, x: -x,
    "abs": lambda library, x: x.abs(),
    "sgn": lambda library, x: x.sgn(),
    "conj": lambda library, x: x.conj(),
    "conj_physical": lambda library, x: x.conj_physical(),
    "eq": lambda library, x: x == x * 1,
    "real": lambda library, x: x.real,
    "imag": lambda library, x: x.imag,
    "view_as_real": lambda library, x: library.view_as_real(x),
    "write_parts": lambda library, x: (x.imag.fill_(3), x)[1],
    "isfinite": lambda library, x: x.isfinite(),
    "isinf": lambda library, x: x.isinf(),
    "isreal": lambda library, x: x.isreal(),
    "fill_": lambda library, x: x.fill_(2j),
    "zeros": lambda library, x: library.zeros(2, 3, dtype=x.dtype),
    "ones": lambda library, x: library.ones(2, dtype=library.chalf),
    "full": lambda library, x: library.full((2,), 1 + 1j, dtype=x.dtype),
    "empty_like": lambda library, x: library.empty_like(x[:0]),
    "row": lambda library, x: x[1],
    "columns": lambda library, x: x[:, ::2],
    "by_list": lambda library, x: x[[1, 0]],
    "index_select": lambda library, x: x.index_select(1, library.tensor([2, 0])),
    "masked_select": lambda library, x: x.masked_select(x == x),
    "transposed": lambda library, x: x.t().contiguous(),
    "expanded": lambda library, x: x[:, :1].expand(2, 4),
    "cat": lambda library, x: library.cat([x, x]),
    "stack": lambda library, x: library.stack([x, x], 1),
    "where": lambda library, x: library.where(x == x[0], x, x * 0),
    "nonzero": lambda library, x: x.nonzero(),
    "set_item": lambda library, x: (x.__setitem__(0, 2j), x)[1],
    "copy_real": lambda library, x: x.copy_(library.ones(3)),
    "times_j": lambda library, x: library.tensor([1.0, 2.0], dtype=library.half) * 1j,
    "complex": lambda library, x: library.complex(x.real, x.imag),
    "view_as_complex": lambda library, x: library.view_as_complex(library.view_as_real(x)),
    **{
        f"to_{dtype.name}": lambda library, x, name=dtype.name: x.to(getattr(library, name))
        for dtype in ALL_DTYPES
        if dtype.name[0] in "bcf"  # the integers of an infinity are undefined
    },
    **{
        f"of_{dtype.name}": lambda library, x, name=dtype.name: library.tensor(
            [0, 1, 1], dtype=getattr(library, name)
        ).chalf()
        for dtype in ALL_DTYPES
    },
}


@pytest.mark.parametrize("name", CALLS)
def test_call(name: str) -> None:
    both(CALLS[name])


# torch has no result for the wider unsigned integers.
@pytest.mark.parametrize("other", [d.name for d in ALL_DTYPES if d.is_signed or d.itemsize == 1])
def test_promotion(other: str) -> None:
    names = []
    for library in (tp, torch):
        dtype = library.promote_types(library.complex32, getattr(library, other))
        assert dtype is library.promote_types(getattr(library, other), library.complex32)
        names.append(str(dtype).rpartition(".")[2])
    assert names[0] == names[1]


@pytest.mark.parametrize("default", ["float16", "float32"])
def test_parts(default: str) -> None:
    assert tp.complex32.to_real() is tp.float16
    assert tp.float16.to_complex() is tp.complex32 is tp.chalf
    assert tp.bfloat16.to_complex() is tp.complex64
    assert tp.result_type(tp.ones(2, dtype=tp.half), 1j) is tp.complex32
    assert tp.finfo(tp.complex32).max == 65504
    tp.set_default_dtype(getattr(tp, default))
    try:
        assert tp.tensor(1j).dtype is getattr(tp, default).to_complex()
    finally:
        tp.set_default_dtype(tp.float32)


def _pointwise() -> list[str]:
    """Return the pointwise ops of one and two tensors that complex64 has."""
    found = []
    x = tp.tensor([0.3 + 0.4j, -0.5 - 0.1j], dtype=tp.complex64)
    for name, op in registered_ops.OPS.items():
        if op.pointwise and op.arity in (1, 2) and op.declared and not op.masks:
            try:
                op.call(*[x] * op.arity)
            except (RuntimeError, TypeError, NotImplementedError):
                continue
            found.append(name)
    return found


@pytest.mark.parametrize("name", _pointwise())
def test_pointwise_is_rounded_once(name: str) -> None:
    """Any pointwise op gives what complex64 gives, rounded to halves."""
    op = registered_ops.OPS[name]
    operands = [tp.tensor(row[:2], dtype=tp.complex32) for row in VALUES][: op.arity]
    result = op.call(*operands)
    expected = op.call(*[operand.cfloat() for operand in operands])
    narrow = {tp.complex64: tp.complex32, tp.float32: tp.float16}
    expected = expected.to(narrow.get(expected.dtype, expected.dtype))
    assert result.dtype is expected.dtype
    np.testing.assert_array_equal(np.array(result.tolist()), np.array(expected.tolist()))


def test_gradient() -> None:
    gradients = []
    for library in (tp, torch):
        x = library.tensor([1 + 2j, 3.0], dtype=library.complex64, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (x.chalf() * 2).abs().sum().backward()
        gradients.append(x.grad.tolist())
    assert gradients[0] == gradients[1]


def test_saved_and_read() -> None:
    x = tp.tensor(VALUES, dtype=tp.complex32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.tensor(VALUES, dtype=torch.complex32)
    for writer, value in ((tp, x), (torch, theirs)):
        for reader in (tp, torch):
            file = io.BytesIO()
            writer.save(value, file)
            file.seek(0)
            read = reader.load(file)
            assert read.dtype is reader.complex32
            assert read.tolist() == x.tolist()
    assert copy.deepcopy(x).tolist() == pickle.loads(pickle.dumps(x)).tolist() == x.tolist()


def test_shown() -> None:
    x = tp.tensor([1 + 2j, 0.5], dtype=tp.complex32)
    assert repr(x) == "tensor([1.0000+2.j, 0.5000+0.j], dtype=tensorplug.complex32)"
    assert x[0].item() == 1 + 2j


def test_what_numpy_lacks() -> None:
    with pytest.raises(TypeError, match="unsupported ScalarType ComplexHalf"):
        tp.ones(2, dtype=tp.complex32).numpy()
    tp.testing.assert_close(tp.ones(2, dtype=tp.chalf), tp.ones(2, dtype=tp.chalf))
    assert tp.testing.make_tensor(3, dtype=tp.complex32).dtype is tp.complex32


SUMS: dict[str, Callable[[Any], Any]] = {
    "index_add": lambda x: x.index_add(1, tp.tensor([0, 2, 0]), x),
    "index_add_": lambda x: x.index_add_(0, tp.tensor([1, 1]), x.clone()),
    "index_put": lambda x: x.index_put((tp.tensor([0, 0]),), x, accumulate=True),
    "index_put_": lambda x: x.index_put_((tp.tensor([0, 0]),), x.clone(), accumulate=True),
    "put": lambda x: x.put(tp.tensor([0, 0, 4]), x[0], accumulate=True),
    "sparse": lambda x: x.to_sparse().to_dense(),
}


@pytest.mark.parametrize("name", SUMS)
def test_elements_are_added_at_their_places(name: str) -> None:
    """Numbers that halves hold exactly, and their sums: as of complex64."""
    numbers = tp.tensor([[1 + 2j, 3 - 4j, 0.5j], [-0.25, 0, 7 + 1j]])
    found = SUMS[name](numbers.to(tp.complex32))
    assert found.dtype is tp.complex32
    assert found.tolist() == SUMS[name](numbers).tolist()
