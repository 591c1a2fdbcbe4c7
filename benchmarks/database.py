"""The operators of torch's own database, with its samples, as calls of both libraries.

``torch.testing._internal`` has for each operator the samples that torch's tests run. They are small; a larger
form is made of one by repeating it along a dimension, where both libraries take that.
"""

import contextlib
import functools
import importlib.util
import math
import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

SAMPLES = 4  # of an operator, spread over all that it has
NAMESPACES = ("nn.functional", "linalg", "fft", "special")
# Bound to torch's own compiler, storage or random state, or not an operator to call.
LEFT_OUT = (
    "jiterator_",
    "torch.ops.",
    "torch._",
    "_",
    "sparse.",
    "empty",
    "new_empty",
    "hash_tensor",
    "to_sparse",
)
# Which the database calls in a way of its own, by a lambda that names torch.
BY_LAMBDA = frozenset(
    (
        "where",
        "einsum",
        "polygamma",
        "special.polygamma",
        "nn.functional.embedding",
        "nn.functional.embedding_bag",
    )
)
Call = Callable[[], Any]


@dataclass(frozen=True)
class Operator:
    """An operator of the database.

    Parameters
    ----------
    name, variant : str
        As the database has them: ``"nn.functional.pad"``, ``"reflect"``.
    ours, theirs : callable
    info : object
        The database's entry.
    """

    name: str
    variant: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    info: Any

    @property
    def label(self) -> str:
        """The name with the variant."""
        return f"{self.name} ({self.variant})" if self.variant else self.name

    @property
    def namespace(self) -> str:
        """Where users find it."""
        return next((n for n in NAMESPACES if self.name.startswith(f"{n}.")), "top level")


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Import torch's databases without what they do to this process, or need for torch's own tests."""
    if "expecttest" not in sys.modules and importlib.util.find_spec("expecttest") is None:
        stand_in: Any = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase
        sys.modules["expecttest"] = stand_in
    with warnings.catch_warnings(), mock.patch("torch.backends.disable_global_flags"):
        # Flags of backends could be set in blocks alone.
        warnings.simplefilter("ignore")
        yield


def operators(ours: Any, theirs: Any) -> tuple[list[Operator], list[str]]:
    """Return the operators that both libraries have, and the names that ours lacks."""
    with importing():
        from torch.testing._internal.common_methods_invocations import op_db

    found, missing = [], []
    for info in op_db:
        if info.name.startswith(LEFT_OUT):
            continue
        function, own = _find(ours, info.name), _find(theirs, info.name) or info.op
        if function is None:
            missing.append(info.name)
            continue
        if info.name in BY_LAMBDA:
            function, own = _rebound(info.op, ours), info.op
        if not callable(function):  # a property
            continue
        found.append(Operator(info.name, info.variant_test_name, function, own, info))
    return found, missing


def _find(library: Any, name: str) -> Any:
    found = functools.reduce(lambda o, part: getattr(o, part, None), name.split("."), library)
    is_function = callable(found) and not isinstance(found, library.dtype)
    return found if is_function else getattr(library.Tensor, name, None)


def _rebound(function: Any, library: Any) -> Any:
    """Return a function of the database with another library in the place of torch."""
    names = {**function.__globals__, "torch": library}
    return types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )


Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def samples(operator: Operator, theirs: Any, wanted: str = "") -> list[Arguments]:
    """Return some samples with elements, spread over all of them, as arguments of torch.

    They are of the dtype that is named, if the operator takes it, or of float32 where it does.
    """
    dtypes = operator.info.supported_dtypes("cpu")
    if wanted:
        order: tuple[Any, ...] = (getattr(theirs, wanted),)
    else:
        order = (theirs.float32, theirs.int64, theirs.complex64, *dtypes)
    dtype = next((d for d in order if d in dtypes), None)
    if dtype is None:
        return []
    made: list[Arguments] = []
    for sample in operator.info.sample_inputs("cpu", dtype, requires_grad=False):
        made.append(((sample.input, *sample.args), dict(sample.kwargs)))
        if len(made) == 100:
            break
    kept = [one for one in made if all(t.numel() for t in tensors(one, theirs))]
    return kept[:: max(1, -(-len(kept) // SAMPLES))]


def tensors(value: Any, library: Any) -> Iterator[Any]:
    """Yield the tensors in nested arguments."""
    if isinstance(value, library.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item, library)
    elif isinstance(value, dict):
        yield from tensors(tuple(value.values()), library)


def converted(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return nested arguments with each plain item changed."""
    if isinstance(value, dict):
        return {name: converted(item, change) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)([converted(item, change) for item in value])
    return change(value)


def to_ours(value: Any, ours: Any, theirs: Any) -> Any:
    """Return an argument of torch as one of ours."""
    if isinstance(value, theirs.Tensor):
        if value.dtype is theirs.bfloat16:  # NumPy has none
            wide = to_ours(value.detach().float(), ours, theirs)
            return wide.bfloat16().requires_grad_(value.requires_grad)
        given = value.detach().resolve_conj().resolve_neg()
        array = (
            np.lib.stride_tricks.as_strided(given.numpy(), given.shape)
            if not given.ndim
            else given.numpy()
        )
        return ours.from_numpy(np.array(array, order="K")).requires_grad_(value.requires_grad)
    if isinstance(value, theirs.Size):
        return tuple(value)
    if isinstance(value, theirs.device):
        return ours.device(str(value))
    if isinstance(value, (theirs.dtype, theirs.memory_format, theirs.layout)):
        return getattr(ours, str(value).removeprefix("torch."))
    return value


def grown(arguments: Arguments, count: int, theirs: Any) -> Iterator[Arguments]:
    """Yield larger forms of a sample: its largest tensor has about so many elements.

    The tensors are repeated along their first dimension, then their last one, then all of one size.
    """
    every = list(tensors(arguments, theirs))
    largest = max(every, key=lambda t: t.numel(), default=None)
    if largest is None or not largest.ndim or not largest.numel():
        return
    times = max(1, -(-count // largest.numel()))
    ways: list[tuple[int, int, int | None]] = [(largest.shape[d], times, d) for d in (0, -1)]
    for size in dict.fromkeys(largest.shape):
        dims = sum(n == size for n in largest.shape)
        ways.append((size, max(2, round(times ** (1 / dims))), None))
    for size, share, dim in ways:
        repeats = [_repeats(tensor, size, share, dim) for tensor in every]
        made = [math.prod(r) * t.numel() for r, t in zip(repeats, every, strict=True)]
        if max(made) <= 4 * max(count, largest.numel()):
            # Another tensor may grow along two dimensions.
            given = {id(t): t.detach().repeat(r) for t, r in zip(every, repeats, strict=True) if r}
            yield converted(arguments, lambda value, given=given: given.get(id(value), value))


def _repeats(tensor: Any, size: int, times: int, dim: int | None) -> list[int]:
    """Return how often a tensor is repeated along each dimension."""
    dims = range(tensor.ndim) if dim is None else [dim % tensor.ndim] if tensor.ndim else []
    return [times if d in dims and n == size else 1 for d, n in enumerate(tensor.shape)]
