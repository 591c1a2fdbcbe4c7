"""The named tuples that ops return are made as torch's are: of one sequence, or by their values."""

from __future__ import annotations

import copy
import pickle

import pytest

import tensorplug as tp

KINDS = [getattr(tp.return_types, name) for name in tp.return_types.__all__]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


def test_one_sequence_or_values(kind):
    values = list(range(len(kind._fields)))
    made = kind(*values)
    for same in (
        kind(values), kind(tuple(values)), kind(iter(values)), kind(made), kind(values, {}),
        kind(sequence=values), kind(values, dict={}), kind(**dict(zip(kind._fields, values, strict=True))),
        kind(values[0], **dict(zip(kind._fields[1:], values[1:], strict=True))),
        copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made)), kind._make(values),
        made._replace(**{kind._fields[0]: 0}),
    ):  # fmt: skip
        assert type(same) is kind
        assert tuple(same) == tuple(values)
    assert [getattr(made, name) for name in kind._fields] == values


def test_wrong_arguments(kind):
    values = list(range(len(kind._fields)))
    for args, kwargs in (
        ((values[1:],), {}), (([*values, 0],), {}), ((3,), {}), ((), {}), ((*values, 0), {}),
        ((values,), {"other": 1}), ((values, 5, 6, 7, 8), {}), ((values, {}, 1, 2, 3), {}),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=kind.__name__):
            kind(*args, **kwargs)


def test_as_torch(kind):
    torch = pytest.importorskip("torch", reason="compares with torch")
    theirs = getattr(torch.return_types, kind.__name__)
    assert kind.__match_args__ == theirs.__match_args__
    for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields"):
        assert getattr(kind, name) == getattr(theirs, name)
    values = list(range(len(kind._fields)))
    assert repr(kind(values)).removeprefix("tensorplug.") == repr(theirs(values)).removeprefix(
        "torch."
    )


def test_all_of_torch_are_there():
    torch = pytest.importorskip("torch", reason="compares with torch")
    names = {kind.__name__.removesuffix("_out") for kind in torch.return_types.all_return_types}
    assert {name for name in names if not name.startswith("_")} == set(tp.return_types.__all__)


def test_results_of_calls_with_out_are_of_the_same_kinds():
    x = tp.tensor([3.0, 1.0, 2.0])
    for name in ("sort", "topk", "kthvalue", "mode", "cummax"):
        args = {"topk": (2,), "kthvalue": (1,)}.get(name, (0,) if name == "cummax" else ())
        out = (tp.empty(0), tp.empty(0, dtype=tp.int64))
        assert type(getattr(tp, name)(x, *args, out=out)) is getattr(tp.return_types, f"{name}_out")
    for wrong in ("histogram_of", "sum_out", "_out"):
        with pytest.raises(AttributeError, match=wrong):
            getattr(tp.return_types, wrong)


def test_names_are_those_of_torch():
    torch = pytest.importorskip("torch", reason="reference for names")
    for kind in torch.return_types.all_return_types:
        assert hasattr(tp.return_types, kind.__name__.rpartition(".")[2])
