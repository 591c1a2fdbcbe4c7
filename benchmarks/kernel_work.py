"""The ops of the kernel suite: what each is given, what it does, and how much memory it goes through."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Shape = Callable[[int], tuple[int, ...]]
Values = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


@dataclass(frozen=True)
class Work:
    """An op: what it is given, what it does, and how often it reads or writes an element.

    Parameters
    ----------
    name : str
    shape : callable
        Given the number of elements, the shape of each of its arguments.
    run : callable
        Given the library and the arguments, returns the result.
    passes : float
        Arrays of that size that are read or written, of 4 bytes per element.
    arguments : int
    tolerance : float
    values : callable or tuple of callables
        Given a generator and a shape, makes an argument; normally distributed float32 unless told. A tuple
        has one for each argument.
    others : tuple of callable
        The shapes of further arguments.
    operations : callable, optional
        Given the number of elements, the multiplications and additions, which count then instead of memory.
    """

    name: str
    shape: Shape
    run: Callable[..., Any]
    passes: float
    arguments: int = 1
    tolerance: float = 1e-4
    values: Values | tuple[Values, ...] | None = None
    others: tuple[Shape, ...] = ()
    operations: Callable[[int], float] | None = None

    def make(self, size: int, device: str = "cpu") -> Callable[[Any], Callable[[], Any]]:
        """Return what sets the op up in a library, as `harness.Case` wants it."""
        generator = np.random.default_rng(0)
        values = self.values or normal
        shapes = [*[self.shape] * self.arguments, *self.others]
        makers = values if isinstance(values, tuple) else (values,) * len(shapes)
        arrays = [
            maker(generator, shape(size)) for maker, shape in zip(makers, shapes, strict=True)
        ]

        def set_up(lib: Any) -> Callable[[], Any]:
            tensors = [lib.from_numpy(array.copy()).to(device) for array in arrays]
            return lambda: self.run(lib, *tensors)

        return set_up


def count(shape: Shape, n: int) -> int:
    """Return how many elements a shape has at a size."""
    return math.prod(shape(n))


# --- arguments -------------------------------------------------------------------------------------


def normal(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return generator.standard_normal(shape, dtype=np.float32)


def positive(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return generator.random(shape, dtype=np.float32) * 4 + np.float32(0.01)


def inside(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers between -1 and 1."""
    return generator.random(shape, dtype=np.float32) * np.float32(1.9) - np.float32(0.95)


def above(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers above 1."""
    return generator.random(shape, dtype=np.float32) * 4 + np.float32(1.01)


def whole(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return generator.integers(1, 100, shape)


def whole32(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return generator.integers(1, 100, shape).astype(np.int32)


def truths(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return generator.random(shape) < 0.5


def double(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return generator.standard_normal(shape)


def flat(n: int) -> tuple[int, ...]:
    return (n,)


def square(n: int) -> tuple[int, ...]:
    return (int(n**0.5), int(n**0.5))


def rows(n: int) -> tuple[int, ...]:
    return (n // 50, 50) if n < 10_000 else (n // 500, 500)


def images(n: int) -> tuple[int, ...]:
    return (1, 4, 5, 5) if n < 10_000 else (n // 10_000, 16, 25, 25)


# --- ops -------------------------------------------------------------------------------------------


def functional(lib: Any) -> Any:
    return lib.nn.functional


def trained(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return forward and backward of a function of the library and one tensor."""

    def run(lib: Any, x: Any) -> Any:
        leaf = x.detach().requires_grad_()
        result = function(lib, leaf)
        result.backward(result.detach())
        return leaf.grad

    return run


def unary(name: str, passes: float = 2, **options: Any) -> Work:
    return Work(name, flat, lambda lib, x: getattr(lib, name)(x), passes, **options)


def binary(name: str, passes: float = 3, **options: Any) -> Work:
    return Work(name, flat, lambda lib, x, y: getattr(lib, name)(x, y), passes, 2, **options)


def learned(name: str, function: Any, shape: Shape, passes: float) -> Work:
    return Work(f"{name} fw+bw", shape, trained(function), passes, tolerance=1e-3)


ACTIVATIONS: dict[str, dict[str, Any]] = {
    "relu": {},
    "leaky_relu": {},
    "elu": {},
    "selu": {},
    "gelu": {},
    "silu": {},
    "softplus": {},
    "hardswish": {},
    "hardsigmoid": {},
    "hardtanh": {},
    "relu6": {},
    "mish": {},
    "logsigmoid": {},
    "softsign": {},
    "threshold": {"threshold": 0.1, "value": 0.0},
}


def activations() -> Iterator[Work]:
    """Yield activations, forward and with their derivative."""
    for name, options in ACTIVATIONS.items():

        def run(lib: Any, x: Any, name: str = name, options: Any = options) -> Any:
            return getattr(functional(lib), name)(x, **options)

        if name != "relu":
            yield Work(name, flat, run, 2)
        yield learned(name, run, flat, 5)

    def gelu_tanh(lib: Any, x: Any) -> Any:
        return functional(lib).gelu(x, approximate="tanh")

    yield Work("gelu tanh", flat, gelu_tanh, 2)
    yield learned("gelu tanh", gelu_tanh, flat, 5)
    for name in ("tanh", "sigmoid", "exp", "sqrt"):
        yield learned(name, lambda lib, x, n=name: getattr(lib, n)(x * x * 0.1 + 0.1), flat, 15)
    yield Work("glu", rows, lambda lib, x: functional(lib).glu(x), 1.5)


def copies() -> Iterator[Work]:
    """Yield what moves elements."""
    yield Work("copy", flat, lambda lib, x: x.clone(), 2)
    yield Work("copy_", flat, lambda lib, x, y: x.copy_(y), 2, 2)
    yield Work("zeros_like", flat, lambda lib, x: lib.zeros_like(x), 1)
    yield Work("full", flat, lambda lib, x: lib.full(x.shape, 1.5, device=x.device), 1)
    yield Work("fill_", flat, lambda lib, x: x.fill_(1.5), 1)
    yield Work("arange", flat, lambda lib, x: lib.arange(x.shape[0], device=x.device), 2)
    yield Work("transpose copy", square, lambda lib, x: x.t().contiguous(), 2)
    yield Work("transpose copy int64", square, lambda lib, x: x.t().contiguous(), 4, values=whole)
    yield Work("permute copy", images, lambda lib, x: x.permute(0, 2, 3, 1).contiguous(), 2)
    yield Work("every second", flat, lambda lib, x: x[::2].contiguous(), 1.5)
    yield Work("columns", square, lambda lib, x: x[:, 3:].contiguous(), 2)
    yield Work("expand copy", square, lambda lib, x: x[:, :1].expand(x.shape).contiguous(), 1)
    yield Work("cat", flat, lambda lib, x, y: lib.cat([x, y]), 4, 2)
    yield Work("cat columns", rows, lambda lib, x, y: lib.cat([x, y], 1), 4, 2)
    yield Work("stack", flat, lambda lib, x, y: lib.stack([x, y]), 4, 2)
    yield Work("stack last", flat, lambda lib, x, y: lib.stack([x, y], 1), 4, 2)
    yield Work("flip", square, lambda lib, x: x.flip(1), 2)
    yield Work("roll", square, lambda lib, x: x.roll(3, 1), 2)
    yield Work("repeat", square, lambda lib, x: x[: (x.shape[0] + 1) // 2].repeat(2, 1), 1.5)
    yield Work("tril", square, lambda lib, x: x.tril(), 2)
    yield Work("pad", square, lambda lib, x: functional(lib).pad(x, (1, 1, 1, 1)), 2)

    def index_select(lib: Any, x: Any) -> Any:
        return x.index_select(0, (lib.arange(x.shape[0], device=x.device) * 7) % x.shape[0])

    yield Work("index_select rows", rows, index_select, 2)
    yield Work("masked_fill", flat, lambda lib, x: x.masked_fill(x > 0, 1.0), 3.5)
    yield Work("masked_select", flat, lambda lib, x: x[x > 0], 3)
    yield Work("nonzero", flat, lambda lib, x: (x > 0).nonzero(), 3)


def reductions() -> Iterator[Work]:
    """Yield reductions over all elements, along rows and along columns, and running sums."""
    for name in ("sum", "mean", "amax", "amin", "argmax", "argmin", "var", "std", "prod"):
        values = inside if name == "prod" else None
        tolerance = 1 if name == "sum" else 1e-3
        for which, shape, dim in (("", flat, None), (" rows", square, 1), (" columns", square, 0)):
            dims = () if dim is None else (dim,)

            def run(_: Any, x: Any, name: str = name, dims: tuple[int, ...] = dims) -> Any:
                return getattr(x, name)(*dims)

            yield Work(name + which, shape, run, 1, 1, tolerance, values)
    yield Work("max", flat, lambda lib, x: x.max(), 1)
    yield Work("max rows", square, lambda lib, x: x.max(1).values, 1)
    yield Work("norm", flat, lambda lib, x: x.norm(), 1, tolerance=5)
    yield Work("norm rows", square, lambda lib, x: lib.linalg.vector_norm(x, dim=1), 1)
    yield Work("logsumexp rows", square, lambda lib, x: lib.logsumexp(x, 1), 1)
    yield Work("any", flat, lambda lib, x: (x > 100).any(), 1.5)
    yield Work("all rows", square, lambda lib, x: (x > 0).all(1), 1.5)
    yield Work("sum images", images, lambda lib, x: x.sum((0, 2, 3)), 1, tolerance=1e-2)
    yield Work("mean images", images, lambda lib, x: x.mean((2, 3)), 1)
    yield Work("sum transposed", square, lambda lib, x: x.t().sum(1), 1, tolerance=1e-2)
    yield Work("cumsum", flat, lambda lib, x: x.cumsum(0), 2, tolerance=1)
    yield Work("cumsum rows", square, lambda lib, x: x.cumsum(1), 2, tolerance=1e-2)
    yield Work("cumsum columns", square, lambda lib, x: x.cumsum(0), 2, tolerance=1e-2)


def layers() -> Iterator[Work]:
    """Yield softmaxes and normalisation, forward and with their derivative."""

    def layer_norm(lib: Any, x: Any) -> Any:
        return functional(lib).layer_norm(x, (x.shape[1],))

    def layer_norm_affine(lib: Any, x: Any, weight: Any) -> Any:
        return functional(lib).layer_norm(x, (x.shape[1],), weight[0], weight[0])

    def rms_norm(lib: Any, x: Any) -> Any:
        return functional(lib).rms_norm(x, (x.shape[1],))

    def group_norm(lib: Any, x: Any) -> Any:
        return functional(lib).group_norm(x, 2)

    def batch_norm(lib: Any, x: Any) -> Any:
        return functional(lib).batch_norm(x, None, None, training=True)

    yield Work("softmax rows", rows, lambda lib, x: x.softmax(1), 2)
    yield Work("softmax columns", rows, lambda lib, x: x.softmax(0), 2)
    yield Work("log_softmax rows", rows, lambda lib, x: x.log_softmax(1), 2)
    yield Work("log_softmax columns", rows, lambda lib, x: x.log_softmax(0), 2)
    yield Work("layer_norm", rows, layer_norm, 2)
    yield Work("layer_norm affine", rows, layer_norm_affine, 2, 2)
    yield Work("rms_norm", rows, rms_norm, 2)
    yield Work("group_norm", images, group_norm, 2)
    yield Work("batch_norm", images, batch_norm, 2)
    yield Work("normalize", rows, lambda lib, x: functional(lib).normalize(x), 2)
    yield learned("softmax", lambda lib, x: x.softmax(1), rows, 5)
    yield learned("log_softmax", lambda lib, x: x.log_softmax(1), rows, 5)
    yield learned("layer_norm", layer_norm, rows, 5)
    yield learned("rms_norm", rms_norm, rows, 5)
    yield learned("group_norm", group_norm, images, 5)
    yield learned("batch_norm", batch_norm, images, 5)


def all_work() -> list[Work]:
    """Return every op of the suite."""
    from .kernel_places import indexing, losses, ordering, random_numbers, scans
    from .kernel_pointwise import gradients, other_dtypes, pointwise
    from .kernel_rows import norms, reduced_gradients, searches, selections

    return [
        *pointwise(),
        *other_dtypes(),
        *gradients(),
        *activations(),
        *copies(),
        *reductions(),
        *layers(),
        *norms(),
        *reduced_gradients(),
        *selections(),
        *searches(),
        *losses(),
        *indexing(),
        *ordering(),
        *scans(),
        *random_numbers(),
    ]
