"""Every operator of torch's own database of samples, here and in torch: results, gradients, saved values.

Sampled by default; ``TENSORPLUG_FUZZ=1``, as ``make fuzz`` has it, runs all of them.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import random
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch")

WHOLE = os.environ.get("TENSORPLUG_FUZZ") == "1"
#: One operator of so many, and so many samples of each.
STEP, SAMPLES = (1, 6) if WHOLE else (16, 2)

RANDOM = "draws other random numbers"
UNDEFINED = "elements are not set, or any of several results is right"
SIGNS = "vectors are defined up to a sign or an order"
WRAPPED = "the database calls a wrapper with arguments of its own"
#: Operators whose results are not compared, with the reason.
NOT_COMPARED = {
    **dict.fromkeys(
        """bernoulli multinomial normal rand_like randint randint_like randn randn_like nn.functional.dropout
        nn.functional.dropout2d nn.functional.dropout3d nn.functional.alpha_dropout
        nn.functional.feature_alpha_dropout nn.functional.rrelu nn.functional.fractional_max_pool2d
        nn.functional.fractional_max_pool3d svd_lowrank pca_lowrank""".split(),
        RANDOM,
    ),
    **dict.fromkeys("empty empty_like new_empty new_empty_strided empty_strided empty_permuted".split(), UNDEFINED),
    **dict.fromkeys(
        """linalg.eig linalg.eigh linalg.svd svd linalg.qr qr geqrf linalg.householder_product lu
        linalg.ldl_factor linalg.ldl_factor_ex""".split(),
        SIGNS,
    ),
    **dict.fromkeys("einsum polygamma special.polygamma bfloat16 half".split(), WRAPPED),
}
#: Operators that may raise here, or in torch, where the other does not after a write to what was an
#: argument or a result: they keep other tensors for backward. The composites are recorded as one node with
#: their arguments, where torch keeps the intermediate results.
OTHER_SAVED: dict[str, str] = {}


def database() -> Any:
    """Return torch's database; its module for expected texts is not needed."""
    added = "expecttest" not in sys.modules and importlib.util.find_spec("expecttest") is None
    if added:
        module: Any = types.ModuleType("expecttest")
        module.TestCase = importlib.import_module("unittest").TestCase
        module.assert_expected_inline = None
        sys.modules["expecttest"] = module
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            name = "torch.testing._internal.common_methods_invocations"
            return importlib.import_module(name).op_db
    except (ImportError, AttributeError) as error:
        pytest.skip(f"this torch has no database of operators: {error}")
    finally:
        if added:
            del sys.modules["expecttest"]


class Unlike(Exception):
    """A sample that has no counterpart here."""


def ours(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            raise Unlike
        return tp.tensor(value.detach().resolve_conj().numpy().copy())
    if isinstance(value, torch.dtype):
        return getattr(tp, str(value).rpartition(".")[2])
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(ours, value))
    if isinstance(value, dict):
        return {name: ours(item) for name, item in value.items()}
    if isinstance(value, (torch.memory_format, torch.device, torch.layout)):
        raise Unlike
    return value


def tensors_of(library: Any, value: Any) -> list[Any]:
    if isinstance(value, library.Tensor):
        return [value]
    return [t for v in value for t in tensors_of(library, v)] if isinstance(value, (list, tuple)) else []


def outcome(library: Any, function: Any, args: Any, kwargs: Any, written: int | None) -> Any:
    """Return results and gradients; after a write to an argument, or to the result (-1), what happens."""

    def leaf(value: Any) -> Any:
        if isinstance(value, library.Tensor):
            value = value.detach().clone()
            return value.requires_grad_() if value.is_floating_point() or value.is_complex() else value
        if isinstance(value, (list, tuple)):
            return type(value)(map(leaf, value))
        return value

    def made(value: Any) -> Any:
        if isinstance(value, library.Tensor):
            return value.clone()
        return type(value)(map(made, value)) if isinstance(value, (list, tuple)) else value

    try:
        leaves = leaf(args)
        given = made(leaves)
        results = function(*given, **kwargs)
        found = [r for r in tensors_of(library, results if isinstance(results, tuple) else [results])]
        tracked = [r for r in found if r.requires_grad]
        if written is not None:
            if not tracked:
                return "no graph"
            target = tracked[0] if written < 0 else tensors_of(library, given)[written]
            with library.no_grad():
                target.copy_(target.clone())
        points = [t for t in tensors_of(library, leaves) if t.requires_grad]
        gradients = []
        if tracked:
            loss = sum((r.abs() ** 2 if r.is_complex() else r * r.detach().cos()).sum() for r in tracked)
            gradients = list(library.autograd.grad(loss, points, allow_unused=True, materialize_grads=True))
    except Exception as error:
        return "modified" if "modified by an inplace" in str(error) else f"raises {type(error).__name__}"
    if written is not None:
        return "fine"
    return [
        (str(t.dtype).rpartition(".")[2], tuple(t.shape), np.asarray(t.detach().resolve_conj().numpy()))
        for t in (*found, *gradients)
    ]


def same(left: Any, right: Any) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return isinstance(left, str) and isinstance(right, str) and left == right
    return len(left) == len(right) and all(
        a[:2] == b[:2] and np.allclose(a[2], b[2], 1e-5, 1e-6, equal_nan=True)
        for a, b in zip(left, right, strict=True)
    )


def cases(dtype: Any) -> Iterator[tuple[Any, Any, Any, Any, Any]]:
    """Yield operators with their counterparts and the arguments of both."""
    for op in database()[::STEP]:
        function: Any = tp
        for part in op.name.split("."):
            function = getattr(function, part, None)
        if function is None or op.name in NOT_COMPARED or dtype not in op.dtypes:
            continue
        try:
            samples = list(op.sample_inputs("cpu", dtype))
        except (RuntimeError, NotImplementedError, ImportError):
            continue
        random.Random(0).shuffle(samples)
        for sample in samples[:SAMPLES]:
            args = (sample.input, *sample.args)
            if sum(t.numel() for t in tensors_of(torch, args)) > 3000:
                continue
            try:
                yield op, function, args, sample.kwargs, (ours(args), ours(sample.kwargs))
            except Unlike:
                continue


@pytest.mark.parametrize("dtype", ["float64", "complex128", "int64"])
@pytest.mark.filterwarnings("ignore")
def test_results_and_gradients(dtype: str) -> None:
    count = 0
    different = []
    for op, function, args, kwargs, (here, options) in cases(getattr(torch, dtype)):
        count += 1
        theirs = outcome(torch, op.op, args, kwargs, None)
        if isinstance(theirs, str):
            continue  # what raises there is looked at elsewhere
        mine = outcome(tp, function, here, options, None)
        if not same(theirs, mine):
            different.append(f"{op.name}{[tuple(t.shape) for t in tensors_of(torch, args)]} {options}: {mine if isinstance(mine, str) else ''}")
    assert count > 20
    print(count)
    assert not different, f"{len(different)} of {count}\n" + "\n".join(different)


@pytest.mark.filterwarnings("ignore")
def test_writes_after_the_call() -> None:
    count = 0
    different = []
    for op, function, args, kwargs, (here, options) in cases(torch.float64):
        if op.name in OTHER_SAVED:
            continue
        for written in range(-1, min(2, len(tensors_of(torch, args)))):
            count += 1
            theirs = outcome(torch, op.op, args, kwargs, written)
            mine = outcome(tp, function, here, options, written)
            if theirs == "fine" and mine != "fine":
                different.append(f"{op.name} {written}: {mine}")
    assert count > 40
    print(count)
    assert not different, f"{len(different)} of {count}\n" + "\n".join(sorted(set(different)))
