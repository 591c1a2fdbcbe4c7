"""Scalar arguments of all ops in all spellings, in and out of the range of their dtypes.

A scalar of NumPy has to do what the Python number does; a number beyond the dtype what it does in torch, if
that is installed: an error where torch finds an overflow, else the same numbers. ``make fuzz`` draws more.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from scalar_cases import clear, drawn, of_numpy, outcome

import tensorplug as tp
from tensorplug.core.device import scalars
from tensorplug.core.dispatch import arguments
from tensorplug.core.dispatch.op_registry import all_ops, get_op
from tensorplug.testing import cases
from tensorplug.testing.records import OpRecord

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "500"))
BEYOND = [
    300,
    -1,
    -200,
    1 << 40,
    2.7,
    1e5,
    -1e9,
    1e39,
    math.nan,
    math.inf,
    -math.inf,
    1j,
    True,
]
MEMORY = "whatever the memory held"
SKIPPED = {"empty": MEMORY, "new_empty": MEMORY}
_NORMS = "a power that is NaN, or beyond the dtype, has no meaning"
OTHERS = {
    **dict.fromkeys(("dist", "linalg_cond", "linalg_norm", "linalg_vector_norm", "norm"), _NORMS),
    **dict.fromkeys(("lp_pool1d", "lp_pool2d", "lp_pool3d"), _NORMS),
    "addbmm": "torch adds the matrices one by one, and infinite ones of both signs are NaN",
    "addmm": "torch's product times infinity is NaN here and there",
    "baddbmm": "whether half precision is refused goes by the shapes in torch",
    "renorm": _NORMS,
    "windows_kaiser": "a beta beyond the dtype is refused, where torch gives NaN",
    "logit": "eps is no probability",
    "scaled_dot_product_attention": "a scale beyond the dtype gives other NaN",
    "special_zeta": "at infinity it is 0, and NaN in torch",
    "std": "a correction that is NaN has no meaning",
    "var": "torch takes a number for the flag `unbiased`",
}


def differing_spellings(drawings: Iterable[Any]) -> list[str]:
    """Return which scalars of NumPy do not do what the Python number does."""
    wrong = []
    for record, dtype, sample, slot in drawings:
        op = get_op(record.op)

        def called(value: Any, inplace: bool, op=op, slot=slot, sample=sample) -> Any:  # type: ignore[no-untyped-def]
            args, kwargs = slot.filled(sample, value)
            args, kwargs = cases.map_tensors((args, kwargs), lambda tensor: tensor.clone())
            if not inplace:
                return outcome(lambda: op.call(*args, **kwargs))
            return outcome(lambda: getattr(args[0], op.inplace)(*args[1:], **kwargs))

        inplace = bool(op.inplace) and slot.where != 0 and isinstance(sample.args[0], tp.Tensor)
        for variant in (False, True) if inplace else (False,):
            wanted = called(slot.value, variant)
            wrong += [
                f"{record.op} {dtype.name} {sample}: {slot.where}={value!r}"
                for value in of_numpy(slot.value)
                if called(value, variant) != wanted
            ]
    return wrong


@pytest.mark.filterwarnings("ignore")
def test_scalars_of_numpy_do_what_python_numbers_do() -> None:
    rng = np.random.default_rng(1)
    wrong = differing_spellings(drawn(rng, COUNT, lambda record: record.op not in SKIPPED))
    assert not wrong, "\n".join(wrong)


@pytest.mark.skipif(tp.compiled(), reason="compiled code does not look functions up in its module")
def test_a_scalar_taken_for_another_number_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> list[str]:
        clear()
        rng = np.random.default_rng(0)
        return differing_spellings(drawn(rng, 20, lambda record: record.op == "leaky_relu"))

    def cut_off(value: Any) -> Any:
        return int(plain(value)) if isinstance(value, np.floating) else plain(value)

    assert not found()
    plain = arguments.plain
    with monkeypatch.context() as patch:
        patch.setattr(arguments, "plain", cut_off)
        assert found()
    clear()


def _takes_any_number(record: OpRecord, slot: Any) -> bool:
    """Return whether an argument is a number that elements are combined with: no size, and no position."""
    op = get_op(record.op)
    if slot.place is not None:
        return False
    name = (
        op.names[min(slot.where, len(op.names) - 1)] if slot.where.__class__ is int else slot.where
    )
    kind = str(op.function.__annotations__.get(name))
    return "Number" in kind or kind.startswith("float")


def differing_from_torch(drawings: Iterable[Any], rng: Any) -> tuple[list[str], int]:
    """Return which calls with numbers out of range do not do what they do in torch, and how many compute."""
    import test_against_torch as reference
    import torch

    compared, wrong = 0, []
    for record, dtype, sample, slot in drawings:
        if not _takes_any_number(record, slot) or record.op in OTHERS:
            continue
        op, function = get_op(record.op), reference.counterpart(record)
        assert function is not None
        for value in (BEYOND[place] for place in rng.permutation(len(BEYOND))[:5]):
            args, kwargs = slot.filled(sample, value)
            their_args = [reference.to_torch(arg) for arg in args]
            their_kwargs = {name: reference.to_torch(arg) for name, arg in kwargs.items()}
            where = f"{record.op} {dtype.name}: {args} {kwargs}"
            refused = overflow = False
            wanted: Any = None
            try:
                wanted = function(*their_args, **their_kwargs)
            except Exception as error:
                refused = True
                overflow = "overflow" in str(error) or isinstance(error, OverflowError)
            try:
                got = op.call(*args, **kwargs)
            except Exception as error:
                if not (refused or isinstance(value, complex)):
                    wrong.append(f"{where} raises {error}")
                continue
            if overflow:
                wrong.append(f"{where} is beyond the range, and gives {got}")
            if refused or not isinstance(wanted, torch.Tensor):
                continue
            compared += 1
            ours, theirs = cases.as_exact(got), reference.exact(wanted)
            close = 5e-2 if dtype.itemsize == 2 else 1e-3
            same = ours.shape == theirs.shape and np.allclose(
                ours, theirs, close, close, equal_nan=True
            )
            named = str(wanted.dtype).removeprefix("torch.")
            if not same or got.dtype.name != named:
                wrong.append(f"{where} gives {got}, torch {wanted}")
    return wrong, compared


def known_to_torch(record: OpRecord) -> bool:
    """Return whether torch has an op, and can tell what numbers out of range do in it."""
    import test_against_torch as reference

    return (
        record in reference.RECORDS
        and "torch" not in record.skips
        and "polynomial" not in record.op  # takes steps of its degree
    )


@pytest.mark.filterwarnings("ignore")
def test_numbers_out_of_range_against_torch() -> None:
    pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    rng = np.random.default_rng(2)
    wrong, compared = differing_from_torch(drawn(rng, COUNT, known_to_torch), rng)
    assert compared
    assert not wrong, "\n".join(wrong)


@pytest.mark.filterwarnings("ignore")
def test_a_number_that_wraps_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")

    def found() -> list[str]:
        clear()
        rng = np.random.default_rng(0)
        masked = drawn(rng, 20, lambda record: record.op == "masked_fill")
        return differing_from_torch(masked, rng)[0]

    assert not found()
    with monkeypatch.context() as patch:
        patch.setattr(scalars, "_largest", lambda dtype: math.inf)  # nothing is out of range
        assert found()
    clear()


def test_what_is_a_float_in_torch_is_declared_as_one() -> None:
    """A parameter that takes any real number there takes an int as it is here: see ``Op.floats``."""
    torch = pytest.importorskip("torch")
    theirs: dict[tuple[str, str], set[str]] = {}
    for schema in torch._C._jit_get_all_schemas():
        for given in schema.arguments:
            name = schema.name.removeprefix("aten::"), given.name
            theirs.setdefault(name, set()).add(str(given.type))
    wrong = [
        f"{op.name}({name}=)"
        for op in all_ops()
        for _, name in op.floats
        if {"number", "Optional[number]"} & theirs.get((op.name.rpartition(".")[2], name), set())
    ]
    assert not wrong, f"declare them as Real: {wrong}"


@pytest.mark.parametrize("value", [-1, 2, True, -1.0, 0.5])
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "bool"])
def test_the_value_of_a_pad_is_a_float(value: Any, dtype: str) -> None:
    torch = pytest.importorskip("torch")

    def made(library: Any) -> Any:
        x = library.ones(2, dtype=getattr(library, dtype))
        try:
            return library.nn.functional.pad(x, (1, 1), value=value).tolist()
        except (RuntimeError, OverflowError, TypeError) as error:
            return type(error)

    for _ in range(2):  # the number comes from the cache the second time
        tp.zeros(1, dtype=tp.uint8).fill_(1)
        assert made(tp) == made(torch)


def test_equal_numbers_of_other_types_are_other_scalars() -> None:
    key = tp.zeros(1, dtype=tp.uint8)._key
    key.scalars.clear()
    assert key.scalar(-1) == 255
    with pytest.raises(RuntimeError):
        key.scalar(-1.0)
    assert key.scalar(1) is key.scalar(1)
    assert key.scalar(1) is not key.scalar(1.0)
