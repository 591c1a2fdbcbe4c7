"""Shapes that fit, or nearly, numbers, dtypes and orders of memory, for calls of both libraries."""

import contextlib

import numpy as np

#: Relative and absolute tolerances of results by the dtype that is computed in.
TOLERANCES = {
    "float32": (1e-3, 1e-4),
    "float64": (1e-7, 1e-7),
    "float16": (5e-2, 5e-2),
    "bfloat16": (1e-1, 1e-1),
    "complex64": (1e-3, 1e-4),
    "int64": (1e-4, 1e-4),  # of the numbers that some functions make of them
}
DTYPES = ("float64", "bfloat16", "float16", "complex64", "int64")
ORDERS = ("plain", "plain", "turned", "stepped", "expanded", "channels last")
MODES = ("plain", "plain", "no_grad", "inference_mode")


def nearly(rng, shape):
    """Return a shape, every second time with another size, a dimension less or more, or without any."""
    place = rng.randrange(len(shape) + 1)
    return rng.choice(
        [
            *[shape] * 4,
            (*shape[:place], rng.choice([0, 1, 2, 3, 5]), *shape[place + 1 :]),
            shape[:place] + shape[place + 1 :],
            (*shape[:place], rng.choice([1, 2, 3]), *shape[place:]),
            (),
        ]
    )


def drawn(rng, kind, shape):
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    if kind.isdigit():
        return numbers.integers(0, int(kind) + 2 * (rng.random() < 0.1), shape)
    made = numbers.uniform(0.05, 0.95, shape) if kind == "chance" else numbers.normal(size=shape)
    return np.asarray(np.sign(made) if kind == "sign" else made, np.float32)


def laid_out(library, array, dtype, order):
    """Return a tensor of an array's numbers, of some dtype and order of memory."""
    tensor = library.tensor(array)
    if array.dtype.kind == "f":
        tensor = (tensor * 3 if dtype == "int64" else tensor).to(getattr(library, dtype))
    if dtype == "complex64" and array.dtype.kind == "f":
        tensor = tensor * (1 + 0.5j)
    if order == "turned" and array.ndim > 1:
        return tensor.transpose(0, -1).contiguous().transpose(0, -1)
    if order == "stepped" and array.ndim:
        return tensor.repeat_interleave(2, -1)[..., ::2]
    if order == "expanded" and array.ndim and array.shape[0]:
        return tensor[:1].expand(array.shape)
    if order == "channels last" and array.ndim in (4, 5):
        form = library.channels_last if array.ndim == 4 else library.channels_last_3d
        return tensor.contiguous(memory_format=form)
    return tensor


def weighted(result):
    """Return the sum of a result's elements with weights: their plain sum is constant for some functions."""
    library = __import__(type(result).__module__.split(".")[0])
    numbers = library.tensor(np.cos(np.arange(result.numel()) * 2.0) + 0.25).reshape(result.shape)
    return (result * numbers.to(result.dtype)).sum()


def mode_of(library, name):
    """Return the context of a mode."""
    return contextlib.nullcontext() if name == "plain" else getattr(library, name)()


def numbers(tensor):
    """Return a tensor's dtype and its numbers as an array."""
    dtype = str(tensor.dtype).rpartition(".")[2]
    plain = tensor.detach().resolve_conj()
    if dtype in ("float16", "bfloat16"):
        plain = plain.float()
    return dtype, plain.numpy().copy()
