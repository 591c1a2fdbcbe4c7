"""Keys of parts drawn at random, read, written, accumulated and differentiated, beside torch."""

import os
import random
import warnings

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch says what a key means")

CASES = range(int(os.environ.get("TENSORPLUG_FUZZ", "300")))
DTYPES = ("float32", "float64", "int64", "bool", "complex64", "uint8", "float16", "bfloat16")
ORDERS = ("plain", "plain", "turned", "stepped")
VALUES = ("number", "float", "flag", "same", "row", "single", "wide", "dtype")


class Positions:
    """An index tensor of either library."""

    def __init__(self, array, dtype):
        self.array, self.dtype = array, dtype

    def of(self, library):
        return library.tensor(self.array).to(getattr(library, self.dtype))


def of(library, key):
    """Return a key with tensors of a library."""
    if isinstance(key, (tuple, list)):
        return type(key)(of(library, part) for part in key)
    return key.of(library) if isinstance(key, Positions) else key


def drawn_part(rng, numbers, n, common):
    """Return a part of a key for a dimension of n elements."""
    ints = [rng.randint(-n, max(n - 1, 0)) if n else 0 for _ in range(rng.randint(0, 3))]
    shape = common[rng.randint(0, len(common)) :]
    where = numbers.integers(-n, n, shape) if n else np.zeros(0, np.int64)
    mask = numbers.random(n) < 0.5
    bounds = [rng.choice([None, rng.randint(-n - 2, n + 2)]) for _ in range(2)]
    return rng.choice(
        [
            slice(*bounds, rng.choice([None, None, 1, 2, 5])),
            slice(*bounds),
            rng.randint(-n, n - 1) if n else 0,
            rng.randint(-n - 1, n),
            None,
            Ellipsis,
            ints if n else [],
            range(rng.randint(0, n)),
            rng.random() < 0.5,
            mask.tolist(),
            Positions(mask, "bool"),
            Positions(mask, "bool"),
            Positions(np.array(rng.random() < 0.5), "bool"),
            mask,
            where,
            Positions(where, "int64"),
            Positions(where, "int64"),
            Positions(where, "int32"),
            Positions(np.array(rng.randint(-n, max(n - 1, 0))), "int64"),
        ]
    )


def drawn_key(rng, numbers, shape):
    common = tuple(rng.randint(1, 3) for _ in range(rng.choice([0, 1, 1, 2])))
    parts, dim = [], 0
    for _ in range(rng.randint(1, len(shape) + 1)):
        if rng.random() < 0.06 and dim + 1 < len(shape):
            parts.append(Positions(numbers.random(shape[dim : dim + 2]) < 0.5, "bool"))
            dim += 2
            continue
        part = drawn_part(rng, numbers, shape[dim] if dim < len(shape) else 1, common)
        if part is Ellipsis and Ellipsis in [p for p in parts if p is Ellipsis]:
            continue
        parts.append(part)
        dim += part is not None and part is not Ellipsis and not isinstance(part, bool)
    if len(parts) == 1 and rng.random() < 0.6:
        return parts[0]
    return parts if rng.random() < 0.1 else tuple(parts)


def laid_out(library, array, dtype, order):
    tensor = library.tensor(array).to(getattr(library, dtype))
    if order == "turned" and tensor.ndim > 1:
        return tensor.transpose(0, -1).contiguous().transpose(0, -1)
    if order == "stepped" and tensor.ndim:
        return library.stack([tensor, tensor], -1)[..., 0]
    return tensor.clone()


def value_for(library, kind, part, other):
    """Return what is written to a part."""
    if kind in ("number", "float", "flag"):
        return {"number": 1, "float": 1.5, "flag": True}[kind]
    shape = tuple(part.shape)
    shape = {"row": shape[-1:], "single": (1,) * len(shape), "wide": (1, *shape)}.get(kind, shape)
    array = np.arange(int(np.prod(shape))).reshape(shape) % 5 + 20
    return library.tensor(array).to(getattr(library, other) if kind == "dtype" else part.dtype)


def seen(tensor):
    plain = tensor.detach()
    plain = plain.float() if tensor.dtype.is_floating_point else plain
    return str(tensor.dtype).rpartition(".")[2], tuple(tensor.shape), np.array(plain.tolist())


def read(library, x, key, kind, other):
    part = x[key]
    return seen(part), part._base is not None


def write(library, x, key, kind, other):
    x[key] = value_for(library, kind, x[key], other)
    return seen(x)


def put(library, x, key, kind, other):
    found = tuple(i for i in (key if isinstance(key, tuple) else (key,)) if library.is_tensor(i))
    if not found:
        return None
    value = value_for(library, kind, x[key], other)
    value = value if library.is_tensor(value) else library.tensor(value, dtype=x.dtype)
    return seen(x.index_put_(found, value, accumulate=other == "float32"))


def weights(library, tensor):
    return library.arange(tensor.numel()).reshape(tensor.shape) % 5 + 1


def gradient(library, x, key, kind, other):
    if not x.dtype.is_floating_point:
        return None
    x.requires_grad_()
    part = x[key]
    (part * weights(library, part)).sum().backward()
    return None if x.grad is None else seen(x.grad)


def gradient_of_write(library, x, key, kind, other):
    if not x.dtype.is_floating_point or other == "complex64":
        return None
    x.requires_grad_()
    y = x * 1
    value = value_for(library, kind, y[key], other)
    if library.is_tensor(value) and value.dtype.is_floating_point:
        value.requires_grad_()
    y[key] = value
    (y * weights(library, y)).sum().backward()
    grad = getattr(value, "grad", None)
    return seen(x.grad), None if grad is None else seen(grad)


def same(theirs, ours):
    if isinstance(theirs, tuple):
        return len(theirs) == len(ours) and all(map(same, theirs, ours))
    if isinstance(theirs, np.ndarray):
        return theirs.shape == ours.shape and np.array_equal(theirs, ours)
    return theirs == ours


def outcome(library, what, array, dtype, order, key, kind, other):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return what(
                library, laid_out(library, array, dtype, order), of(library, key), kind, other
            )
        except (IndexError, TypeError, ValueError, RuntimeError) as error:
            return error


def refused_by_accident(error):
    """Return whether torch only fails where it counts dimensions, or has no kernel, of a mask."""
    words = (
        "INTERNAL ASSERT",
        "undefined Tensor",
        "nullptr",
        "too many indices",
        "invalid gradient",
        "shape [0] cannot",
    )
    return any(word in str(error) for word in words)


@pytest.mark.parametrize("what", [read, write, put, gradient, gradient_of_write])
def test_drawn_keys(what):
    count = 0
    for seed in CASES:
        rng, numbers = random.Random(f"keys {seed}"), np.random.default_rng(seed)
        shape = tuple(rng.choice([0, 1, 2, 2, 3, 3, 4, 5]) for _ in range(rng.randint(0, 4)))
        key = drawn_key(rng, numbers, shape)
        dtype, order = rng.choice(DTYPES), rng.choice(ORDERS)
        array = np.arange(int(np.prod(shape))).reshape(shape) * 7 % 11
        given = (array, dtype, order, key, rng.choice(VALUES), rng.choice(DTYPES))
        theirs, ours = outcome(torch, what, *given), outcome(tp, what, *given)
        told = f"{seed}: {what.__name__} {given[:3]} {of(torch, key)} {given[4:]}: {theirs} {ours}"
        if isinstance(theirs, Exception):
            count += isinstance(ours, Exception)
            assert refused_by_accident(theirs) or isinstance(ours, type(theirs)), told
        else:
            assert not isinstance(ours, Exception), told
            assert same(theirs, ours), told
            count += theirs is not None
    assert count > len(CASES) // 8
