"""Objects with `__torch_function__` that are no tensors are asked wherever a tensor is expected."""

import operator
import os

import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing.cases import map_tensors, samples_of
from tensorplug.testing.records import all_records

#: How many samples of each op are tried; one in a run of all tests.
SAMPLES = 4 if os.environ.get("TENSORPLUG_FUZZ") else 1


class Noting:
    """No tensor; notes the functions that it is asked about, and answers all attributes."""

    def __init__(self):
        vars(self)["asked"] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        found = []
        map_noting((args, kwargs or {}), found.append)
        found[0].asked.append(func)
        return found[0]

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Answer()


class Answer:
    """What such an object answers: no value, so that it must not be compared."""

    def __eq__(self, other):
        raise AssertionError("an object with __torch_function__ was looked into")

    __hash__ = None


def map_noting(value, function):
    if isinstance(value, Noting):
        function(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            map_noting(item, function)
    elif isinstance(value, dict):
        map_noting(list(value.values()), function)


def placed(args):
    """Return the arguments with such an object in the place of each tensor by turns."""
    for position, value in enumerate(args):
        if isinstance(value, tp.Tensor):
            other = Noting()
            yield position, other, [*args[:position], other, *args[position + 1 :]]


def all_samples():
    for record in all_records():
        dtype = tp.float32 if tp.float32 in record.dtypes else record.dtypes[0]
        for sample in samples_of(record, "cpu", dtype)[:SAMPLES]:
            yield record, sample


def test_every_op_asks_before_it_does_anything():
    met = 0
    for record, sample in all_samples():
        op = get_op(record.op)
        for position, other, args in placed(sample.args):
            result = op.call(*args, **sample.kwargs)
            assert result is other, (record.op, position)
            assert len(other.asked) == 1, (record.op, position)
            if record.op != "basic_index":  # which is indexing
                assert other.asked[0].op is op, (record.op, position, other.asked)
            met += 1
    assert met > 850


def test_every_method_and_write_asks():
    met = 0
    for record, sample in all_samples():
        for position, other, args in placed(sample.args):
            if position == 0 or not isinstance(args[0], tp.Tensor):
                continue
            before = args[0].clone()
            for name in (record.op, f"{record.op}_"):
                method = getattr(before, name, None)
                if method is None:
                    continue
                other.asked.clear()
                assert method(*args[1:], **sample.kwargs) is other, (name, position)
                assert [f.__name__ for f in other.asked] == [name], (name, position)
                met += 1
            assert before._version == 0, record.op
    assert met > 150


def test_every_function_that_writes_asks():
    met = 0
    for record, sample in all_samples():
        name = f"{record.op}_"
        function = getattr(tp, name, None)
        if function is None or not (sample.args and isinstance(sample.args[0], tp.Tensor)):
            continue
        other = Noting()
        assert function(other, *sample.args[1:], **sample.kwargs) is other, name
        assert [f.__name__ for f in other.asked] == [name], name
        met += 1
    assert met > 90


OWN = {
    "clone": lambda x: tp.clone(x),
    "clone to a format": lambda x: tp.clone(x, memory_format=tp.contiguous_format),
    "detach": lambda x: tp.detach(x),
    "fill_": lambda x: tp.fill_(x, 1.0),
    "fill_ with one": lambda x: tp.zeros(2).fill_(x),
    "as_strided_": lambda x: tp.as_strided_(x, (2,), (1,)),
    "msort": lambda x: tp.msort(x),
    "det": lambda x: tp.det(x),
    "index": lambda x: tp.index(x, [tp.tensor([0])]),
    "index_put_": lambda x: tp.zeros(3).index_put_([tp.tensor([0])], x),
}


@pytest.mark.parametrize("name", OWN)
def test_functions_of_their_own_ask(name):
    other = Noting()
    assert OWN[name](other) is other
    assert [f.__name__ for f in other.asked] == [name.split()[0]]
    with tp.overrides.DisableTorchFunction(), pytest.raises(TypeError):
        OWN[name](Noting())


OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift",
    "rshift", "lt", "le", "gt", "ge", "eq", "ne",
)  # fmt: skip
COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")
MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
WRITTEN = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
)


@pytest.mark.parametrize("dtype", ["int64", "float32"])
@pytest.mark.parametrize("name", [*OPERATORS, *[f"i{name}" for name in WRITTEN]])
def test_operators_ask(name, dtype):
    """As in torch; the names by which they are asked are those of functions, see the deviations."""
    libraries = [tp]
    if dtype == "int64":
        libraries.append(
            pytest.importorskip("torch", reason="the answers are compared with torch's")
        )
    function = getattr(operator, name)
    for lib in libraries:
        x = lib.ones(2, 2, dtype=getattr(lib, dtype))
        other = Noting()
        assert function(x, other) is other
        if not name.startswith("i"):
            assert function(other, x) is other
        assert len(other.asked) == (1 if name.startswith("i") else 2)
        assert (x == 1).all()


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_leave_other_objects_to_python(name):
    function = getattr(operator, name)
    x = tp.ones(2, 2, dtype=tp.int64)

    class Reflected:
        def __getattr__(self, attribute):
            return Answer()

    special = (
        f"__r{name.rstrip('_')}__" if name not in COMPARED else f"__{MIRRORED.get(name, name)}__"
    )
    setattr(Reflected, special, lambda self, other: "answered")
    assert function(x, Reflected()) == "answered"
    with tp.overrides.DisableTorchFunction():
        if name in ("eq", "ne"):
            assert function(x, Noting()) is (name == "ne")
        else:
            with pytest.raises(TypeError):
                function(x, Noting())


def test_what_stays_plain_is_still_a_number():
    np = pytest.importorskip("numpy")
    x = tp.ones(2)
    for number in (np.float32(2), np.int64(2), np.bool_(True)):
        assert map_tensors(x + number, lambda t: t.tolist()) == [1 + int(number)] * 2
