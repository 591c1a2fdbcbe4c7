"""A mode that hands each call on changes nothing: of functions, of methods that write, and with ``out=``."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.nn import functional as F
from tensorplug.overrides import TorchFunctionMode
from tensorplug.testing.cases import assert_same, map_tensors, samples_of
from tensorplug.testing.comparison import as_exact
from tensorplug.testing.records import all_records
from tensorplug.utils._python_dispatch import TorchDispatchMode

F.relu  # noqa: B018  # its ops have records too
UNSET = ("empty_like", "new_empty", "empty_strided", "new_empty_strided")
# A key is no argument with a name, and its op takes no ``out=``.
RECORDS = [record for record in all_records() if record.op not in (*UNSET, "basic_index")]
SLICES = 4
pytestmark = pytest.mark.filterwarnings("ignore")


class Functions(TorchFunctionMode):
    def __init__(self) -> None:
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Ops(TorchDispatchMode):
    def __init__(self) -> None:
        self.names: list[str] = []
        self.forms: list[tuple[str, str]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket.__name__)
        self.forms.append((func.overloadpacket.__name__, func._overloadname))
        return func(*args, **(kwargs or {}))


def fresh(value: Any) -> Any:
    return map_tensors(value, lambda tensor: tensor.detach().clone())


def outcome(function: Any) -> Any:
    """Return what a call gives, as NumPy arrays, or how it fails."""
    tp.manual_seed(0)
    try:
        result = function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return map_tensors(result, lambda tensor: as_exact(tensor).copy())


def forms(record: Any, sample: Any) -> Any:
    """Yield the name that a mode should see, and a function of arguments, for each way to make a call."""
    op = get_op(record.op)
    yield None, op.call
    if op.inplace is not None and sample.args and isinstance(sample.args[0], tp.Tensor):
        yield op.inplace, lambda first, *args, **kwargs: getattr(first, op.inplace)(*args, **kwargs)
    tp.manual_seed(0)
    result = op.call(*fresh(sample.args), **fresh(sample.kwargs))
    if isinstance(result, tp.Tensor):
        wide = tp.float64 if result.dtype is not tp.float64 else tp.complex128
        yield None, lambda *args, **kwargs: op.call(*args, **kwargs, out=None)
        for dtype in (result.dtype, wide):
            yield (
                None,
                lambda *args, dtype=dtype, **kwargs: op.call(
                    *args, **kwargs, out=tp.zeros_like(result, dtype=dtype)
                ),
            )


def calls(records: Any, most: int) -> Any:
    """Yield each form of some samples of each op: a text, the name to be seen, what readies a call."""
    for record in records:
        dtype = tp.float32 if tp.float32 in record.dtypes else record.dtypes[0]
        for sample in samples_of(record, "cpu", dtype)[:most]:
            for name, function in forms(record, sample):

                def ready(f: Any = function, sample: Any = sample) -> Any:
                    args, kwargs = fresh((sample.args, sample.kwargs))
                    return functools.partial(f, *args, **kwargs)

                yield f"{record.op} {name} {sample}", name, ready


def compared(expected: Any, found: Any, mode: Any) -> None:
    """Compare two outcomes: what is composed of other ops, as ATen has it, may be rounded in other places."""
    assert type(found) is type(expected), (found, expected)
    if isinstance(expected, str):
        assert found == expected
    elif mode is Ops and isinstance(expected, np.ndarray):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    else:
        assert_same(expected, found, "other values")


@pytest.mark.parametrize("mode", [Functions, Ops])
@pytest.mark.parametrize("part", range(SLICES))
def test_calls(part: int, mode: Any) -> None:
    wrong, count = [], 0
    for text, name, ready in calls(RECORDS[part::SLICES], 2):
        expected = outcome(ready())
        call = ready()
        with mode() as seen:
            found = outcome(call)
        count += 1
        try:
            compared(expected, found, mode)
            if name is not None and not isinstance(found, str):
                assert name in seen.names, seen.names
        except AssertionError as error:
            wrong.append(f"{text}: {error}"[:300])
    assert not wrong, "\n".join(wrong)
    assert count > 300


def test_forms_of_ops_are_those_of_aten() -> None:
    torch = pytest.importorskip("torch", reason="the names are compared with torch's")
    unknown, met = set(), 0
    for _, _, ready in calls(RECORDS, 4):
        call = ready()
        with Ops() as seen:
            outcome(call)
        for packet, form in seen.forms:
            theirs = getattr(torch.ops.aten, packet, None)  # of an op that ATen has
            if theirs is not None:
                met += 1
                unknown |= {(packet, form)} - {(packet, name) for name in theirs.overloads()}
    assert unknown == {("gradient", "default")}  # torch has seven, by how the distances are given
    assert met > 3000


def test_several_methods_write_by_one_op() -> None:
    """`fill_` and `copy_` do, and were once both seen as whichever had been called first."""
    with Functions() as seen:
        tensor = tp.zeros(2)
        tensor.fill_(3.0)
        tensor.copy_(tp.ones(2))
        tensor.clamp_(max=0.5)
        tensor.clamp_max_(0.25)
    assert tensor.tolist() == [0.25, 0.25]
    assert seen.names == ["zeros", "fill_", "ones", "copy_", "clamp_", "clamp_max_"]
