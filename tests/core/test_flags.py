"""A number is no flag and a flag no number: every such parameter of every op, beside torch."""

import warnings

import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing import cases

torch = pytest.importorskip("torch", reason="torch is what is compared with")
from tests.ops.test_against_torch import RECORDS, counterpart, to_torch  # noqa: E402

FLAGS = ("bool", "bool | None")
NUMBERS = ("int", "int | None")
# Functions that torch has in Python, where whatever is true is a flag, and True a number.
IN_PYTHON = {
    "embedding_bag",
    "gaussian_nll_loss",
    "gumbel_softmax",
    "interpolate",
    "istft",
    "lu",
    "multi_head_attention_forward",
    "stft",
}
RECURRENT = ("gru", "lstm", "rnn_relu", "rnn_tanh")  # with wrong flags torch's end the process


def in_python(op, parameter):
    return op in IN_PYTHON or op.startswith("windows_") or parameter == "return_indices"


def taken(function, args, kwargs):
    try:
        function(*args, **kwargs)
    except (TypeError, RuntimeError, ValueError, IndexError, AssertionError, AttributeError):
        return False
    return True


def wrong_kind(parameter, value):
    """Return a value of the kind that a parameter is not of: a number, or True or False."""
    if str(parameter.annotation) in FLAGS:
        return int(value) if isinstance(value, bool) else 1
    return bool(value) if value in (0, 1) else True


def a_tensor(parameter, value):
    """Return a tensor for a flag, and what :func:`wrong_kind` has for a number, whose tensors are read."""
    if str(parameter.annotation) in FLAGS:
        return tp.tensor(bool(value))
    return wrong_kind(parameter, value)


def differing(record, parameter, position, wrong_kind):
    """Return whether ours takes what torch does not, or the other way round; None if nothing tells."""
    op, function = get_op(record.op), counterpart(record)
    dtype = next((d for d in (tp.float32, tp.int64, tp.complex64) if d in record.dtypes), None)
    if dtype is None:
        return None
    for sample in cases.samples_of(record, "cpu", dtype)[:3]:
        args, kwargs = list(sample.args), dict(sample.kwargs)
        place, key = (args, position) if position < len(args) else (kwargs, parameter.name)
        known = args[position] if place is args else kwargs.get(key, parameter.default)
        place[key] = wrong_kind(parameter, known)
        theirs = taken(function, to_torch(args), to_torch(kwargs))
        ours = taken(op.call, args, kwargs)
        if ours != theirs:
            return f"{record.op}({parameter.name}={place[key]!r}): torch {theirs}, ours {ours}"
    return ""


def parameters_of(record):
    parameters = get_op(record.op).signature.parameters
    for position, parameter in enumerate(parameters.values()):
        if str(parameter.annotation) in (*FLAGS, *NUMBERS):
            yield parameter, position


def compared(records, wrong_kind=wrong_kind):
    wrong, count = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for record in records:
            for parameter, position in parameters_of(record):
                if record.op in RECURRENT or in_python(record.op, parameter.name):
                    continue
                told = differing(record, parameter, position, wrong_kind)
                count += told is not None
                wrong += [told] if told else []
    return wrong, count


@pytest.mark.parametrize("kind", [wrong_kind, a_tensor])
@pytest.mark.parametrize("part", range(2))
def test_all_ops(part, kind):
    wrong, count = compared(RECORDS[part::2], kind)
    assert not wrong, "\n".join(wrong)
    assert count > 150


def test_a_planted_fault_is_found(monkeypatch):
    op = get_op("sort")
    monkeypatch.setattr(op, "flags", ())
    assert compared([record for record in RECORDS if record.op == "sort"])[0]
