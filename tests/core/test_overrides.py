"""`__torch_function__`: subclasses, other classes and modes take calls over as in torch."""

import copy
import gc
import inspect
import operator
import os
import pickle
from typing import Any, ClassVar

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch.counts import settle
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.testing.cases import map_tensors, samples_of
from tensorplug.testing.records import all_records

try:
    import torch
except ImportError:  # what needs it is skipped
    torch = None

LIBRARIES = [tp] if torch is None else [tp, torch]
#: How many samples of each op are tried; one in a run of all tests.
SAMPLES = 5 if os.environ.get("TENSORPLUG_FUZZ") else 1


def logged(lib):
    """Return a subclass of a library's Tensor, and the functions that it was asked about."""
    log = []

    class Logged(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append((func, types, args, kwargs))
            return super().__torch_function__(func, types, args, kwargs or {})

    return Logged, log


def names(log, lib):
    """Return the names of logged functions, and whether each is the method of that name."""
    return [(f.__name__, f is getattr(lib.Tensor, f.__name__, None)) for f, *_ in log]


# --- operators, methods, attributes -------------------------------------------------------------

PLACES = ("add", "sub", "mul", "truediv", "floordiv", "mod", "matmul")
WHOLE = ("and_", "or_", "xor", "lshift", "rshift")
COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")


def _binary(name, sign):
    def call(lib, t, i, p):
        a, b = (i, lib.tensor([1, 2])) if name in WHOLE else (t, p)
        number = b if name == "matmul" else 2
        left, right = {"own": (a, a), "plain": (b, a), "number": (number, a), "after": (a, number)}[
            sign
        ]
        return getattr(operator, name)(left, right)

    return call


def _written(name):
    def call(lib, t, i, p):
        return getattr(operator, f"i{name.strip('_')}")(i if name in WHOLE else t, 2)

    return call


CALLS = {
    **{
        f"{name} {sign}": _binary(name, sign)
        for name in (*PLACES, *WHOLE, *COMPARED)
        for sign in ("own", "plain", "number", "after")
    },
    **{
        f"{name} in place": _written(name)
        for name in (*PLACES, *WHOLE)
        if name not in ("matmul", "and_", "or_", "xor", "lshift", "rshift")
    },
    "neg": lambda lib, t, i, p: -t,
    "pos": lambda lib, t, i, p: +t,
    "abs": lambda lib, t, i, p: abs(t),
    "invert": lambda lib, t, i, p: ~i,
    "getitem": lambda lib, t, i, p: t[0],
    "getitem by slice": lambda lib, t, i, p: t[..., :1],
    "getitem of a plain one": lambda lib, t, i, p: p[i],
    "setitem": lambda lib, t, i, p: t.__setitem__(0, 5.0),
    "len": lambda lib, t, i, p: len(t),
    "bool": lambda lib, t, i, p: bool(t[0, 0] > 0),
    "float": lambda lib, t, i, p: float(t[0, 0]),
    "int": lambda lib, t, i, p: int(i[0]),
    "contains": lambda lib, t, i, p: 1.0 in t,
    "detach": lambda lib, t, i, p: t.detach(),
    "clone": lambda lib, t, i, p: t.clone(),
    "to": lambda lib, t, i, p: t.to(lib.float64),
    "double": lambda lib, t, i, p: t.double(),
    "requires_grad_": lambda lib, t, i, p: t.requires_grad_(),
    "size": lambda lib, t, i, p: t.size(),
    "dim": lambda lib, t, i, p: t.dim(),
    "tolist": lambda lib, t, i, p: t.tolist(),
    "item": lambda lib, t, i, p: t.sum().item(),
    "max": lambda lib, t, i, p: t.max(0),
    "unbind": lambda lib, t, i, p: t.unbind(),
    "add_": lambda lib, t, i, p: t.add_(1),
    "reshape": lambda lib, t, i, p: t.reshape(4),
    "chunk": lambda lib, t, i, p: t.chunk(2),
    "new_zeros": lambda lib, t, i, p: t.new_zeros(3),
    "shape": lambda lib, t, i, p: t.shape,
    "dtype is a float": lambda lib, t, i, p: t.dtype.is_floating_point,
    "T": lambda lib, t, i, p: t.T,
    "data": lambda lib, t, i, p: t.data,
    "grad": lambda lib, t, i, p: t.grad,
    "set data": lambda lib, t, i, p: setattr(t, "data", p),
    "set grad": lambda lib, t, i, p: setattr(t, "requires_grad", True),
    "tp.add": lambda lib, t, i, p: lib.add(t, 1),
    "tp.add of a plain one": lambda lib, t, i, p: lib.add(p, t),
    "tp.stack": lambda lib, t, i, p: lib.stack([p, t]),
    "tp.cat": lambda lib, t, i, p: lib.cat((t, t), dim=1),
    "tp.where": lambda lib, t, i, p: lib.where(p > 0, t, p),
    "tp.zeros_like": lambda lib, t, i, p: lib.zeros_like(t),
    "tp.exp": lambda lib, t, i, p: lib.exp(t),
    "tp.softmax": lambda lib, t, i, p: lib.softmax(t, 0),
    "tp.sort": lambda lib, t, i, p: lib.sort(t, dim=1),
    "tp.split": lambda lib, t, i, p: lib.split(t, 1),
    "tp.einsum": lambda lib, t, i, p: lib.einsum("ij,jk->ik", t, p),
    "tp.is_tensor": lambda lib, t, i, p: lib.is_tensor(t),
    "tp.as_tensor": lambda lib, t, i, p: lib.as_tensor(t),
    "F.relu": lambda lib, t, i, p: lib.nn.functional.relu(t),
    "F.softmax": lambda lib, t, i, p: lib.nn.functional.softmax(t, dim=0),
    "F.linear": lambda lib, t, i, p: lib.nn.functional.linear(t, p),
    "F.gelu": lambda lib, t, i, p: lib.nn.functional.gelu(t),
    "F.dropout": lambda lib, t, i, p: lib.nn.functional.dropout(t, 0.0),
    "F.layer_norm": lambda lib, t, i, p: lib.nn.functional.layer_norm(t, (2,)),
    "F.mse_loss": lambda lib, t, i, p: lib.nn.functional.mse_loss(t, p),
    "nn.Linear": lambda lib, t, i, p: lib.nn.Linear(2, 2)(t).shape,
    "linalg.norm": lambda lib, t, i, p: lib.linalg.norm(t),
    "as_subclass": lambda lib, t, i, p: t.as_subclass(lib.Tensor),
}
#: Names that torch spells otherwise: what it calls is the same.
OTHER_NAMES = {"__rtruediv__": "__rdiv__"}


def outcome(lib, name):
    cls, log = logged(lib)
    t = lib.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(cls)
    i = lib.tensor([1, 0]).as_subclass(cls)
    p = lib.tensor([[2.0, 1.0], [1.0, 3.0]])
    result = CALLS[name](lib, t, i, p)
    found = names(log, lib)

    def shown(value):
        if isinstance(value, lib.Tensor):
            return (
                type(value).__name__,
                shown(value.detach().as_subclass(lib.Tensor).tolist()),
            )
        if isinstance(value, (tuple, list)):
            return [shown(item) for item in value]
        if isinstance(value, (int, float)):
            return value if isinstance(value, bool) else float(f"{value:.4g}")
        return str(value).replace("tensorplug", "torch")

    return found, shown(result)


@pytest.mark.skipif(torch is None, reason="torch is the reference")
@pytest.mark.parametrize("name", CALLS)
def test_calls_are_met_as_in_torch(name):
    ours, result = outcome(tp, name)
    theirs, expected = outcome(torch, name)
    assert result == expected
    assert [OTHER_NAMES.get(n, n) for n, _ in ours] == [n for n, _ in theirs]
    assert [m for n, m in ours if n != "__rtruediv__"] == [m for n, m in theirs if n != "__rdiv__"]


# --- every op ------------------------------------------------------------------------------------


class Kept(tp.Tensor):
    pass


def same(a, b):
    if isinstance(a, tp.Tensor):
        assert a.dtype == b.dtype
        with tp.overrides.DisableTorchFunction():
            np.testing.assert_array_equal(
                np.asarray(a.detach().to(tp.complex128)), np.asarray(b.detach().to(tp.complex128))
            )
    elif isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            same(one, other)
    elif not isinstance(a, float) or a == a:
        assert a == b


def kinds(value, lib):
    """Return which results are of the subclass."""
    if isinstance(value, lib.Tensor):
        return type(value).__name__
    if isinstance(value, (tuple, list)):
        return [kinds(item, lib) for item in value]
    return None


def test_results_of_every_op_keep_the_subclass():
    """One call is met per call, with the public function, and the values are those of plain tensors."""
    cls, log = logged(tp)
    met, compared = 0, 0
    for record in all_records():
        function = get_op(record.op).call
        dtype = tp.float32 if tp.float32 in record.dtypes else record.dtypes[0]
        for sample in samples_of(record, "cpu", dtype)[:SAMPLES]:
            tensors = []
            map_tensors((sample.args, sample.kwargs), tensors.append)
            if not tensors:
                continue
            tp.manual_seed(0)
            plain = function(*copied(sample.args), **copied(sample.kwargs))
            args = map_tensors(copied(sample.args), lambda t: t.as_subclass(cls))
            kwargs = map_tensors(copied(sample.kwargs), lambda t: t.as_subclass(cls))
            log.clear()
            tp.manual_seed(0)
            result = function(*args, **kwargs)
            assert len(log) == 1, (record.op, [f.__name__ for f, *_ in log])
            assert record.op == "basic_index" or log[0][0].op is get_op(record.op)
            map_tensors(result, lambda t, op=record.op: isinstance(t, cls) or pytest.fail(op))
            if record.op not in ("empty_like", "new_empty", "empty_strided", "new_empty_strided"):
                same(result, plain)
            met += 1
            compared += torch is not None and agrees(record, sample, kinds(result, tp))
    assert met > 550
    assert torch is None or compared > 250


def copied(value):
    return map_tensors(value, lambda t: t.detach().clone())


def agrees(record, sample, expected):
    """Return whether torch's function has the same classes of results; False where it takes no such call."""
    function = torch
    for part in (record.torch or record.op).split("."):
        function = getattr(function, part, None)
    function = function or getattr(torch.nn.functional, record.op, None)
    if function is None or "torch" in record.skips or record.torch == "":
        return False

    class Logged(torch.Tensor):
        pass

    def theirs(value):
        if isinstance(value, tp.Tensor):
            return torch.tensor(value.tolist(), dtype=torch.float32).as_subclass(Logged)
        if isinstance(value, (tuple, list)):
            return type(value)([theirs(item) for item in value])
        return value

    try:
        result = function(
            *[theirs(arg) for arg in sample.args],
            **{name: theirs(value) for name, value in sample.kwargs.items()},
        )
    except Exception:
        return False  # of other dtypes, or a call that torch does not take
    assert kinds(result, torch) == expected, record.op
    return True


# --- the protocol: programs that run in both libraries -------------------------------------------


@pytest.fixture(params=LIBRARIES, ids=lambda lib: lib.__name__)
def lib(request):
    return request.param


def overriding(lib):
    """Return the module that has torch's names of overrides."""
    return lib.overrides


def disabled(lib):
    return (lib.overrides if lib is tp else lib._C).DisableTorchFunctionSubclass


class Scalar:
    """No tensor: a value, and a registry of functions, as torch's notes on extending it have it."""

    handled: ClassVar[dict[Any, Any]] = {}

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in cls.handled or not all(issubclass(t, Scalar) for t in types):
            return NotImplemented
        return cls.handled[func](*args, **(kwargs or {}))


def test_objects_that_are_no_tensors_take_calls_over(lib):
    class Own(Scalar):
        handled: ClassVar[dict[Any, Any]] = {}

    handled = Own.handled
    for function in (lib.add, lib.exp, lib.nn.functional.softmax, lib.mean, lib.cat, lib.where):
        handled[function] = lambda *args, function=function, **kwargs: (function, args, kwargs)
    a, x = Own(3), lib.ones(2)
    assert lib.add(a, 2) == (lib.add, (a, 2), {})
    assert lib.exp(a) == (lib.exp, (a,), {})
    assert lib.mean(a, dim=1) == (lib.mean, (a,), {"dim": 1})
    assert lib.cat([a, a]) == (lib.cat, ([a, a],), {})
    assert lib.nn.functional.softmax(a, dim=0)[0] is lib.nn.functional.softmax
    assert lib.where(x > 0, x, a)[0] is lib.where
    for call in (lambda: lib.sub(a, 1), lambda: lib.mul(x, a), lambda: lib.stack([x, a])):
        with pytest.raises(TypeError, match=r"(?s)Multiple dispatch failed for .*Own"):
            call()
    assert overriding(lib).is_tensor_like(a)
    assert overriding(lib).is_tensor_like(x)
    assert not overriding(lib).is_tensor_like(3)
    assert overriding(lib).has_torch_function((x, a))
    assert not overriding(lib).has_torch_function((x, lib.nn.Parameter(x)))


def test_subclasses_of_subclasses_are_asked_first(lib):
    asked = []

    def made(name, base, answer):
        def method(cls, func, types, args=(), kwargs=None):
            asked.append((name, [t.__name__ for t in types]))
            return answer

        return type(name, (base,), {"__torch_function__": classmethod(method)})

    outer = made("Outer", lib.Tensor, "outer")
    inner = made("Inner", outer, NotImplemented)
    other = made("Other", lib.Tensor, "other")
    a, b, c = (lib.ones(1).as_subclass(kind) for kind in (outer, inner, other))
    assert lib.add(a, b) == "outer"
    assert asked == [("Inner", ["Inner", "Outer"]), ("Outer", ["Inner", "Outer"])]
    asked.clear()
    assert lib.stack([c, b]) == "other"
    assert asked == [("Other", ["Other", "Inner"])]
    asked.clear()
    assert lib.cat([b, c, b]) == "other"
    assert asked == [("Inner", ["Inner", "Other"]), ("Other", ["Inner", "Other"])]


def test_unrelated_subclasses_do_not_mix(lib):
    class A(lib.Tensor):
        pass

    class B(lib.Tensor):
        pass

    class C(A):
        pass

    a, b, c = (lib.ones(2).as_subclass(kind) for kind in (A, B, C))
    assert type(a + c) is C
    assert type(c + a) is C
    assert type(a + 1) is A
    with pytest.raises(TypeError, match=r"(?s)Multiple dispatch failed .*A.*B"):
        lib.add(a, b)
    assert type(a + lib.nn.Parameter(lib.ones(2))) is A


def test_functions_and_methods_are_told_apart(lib):
    cls, log = logged(lib)
    t = lib.ones(2).as_subclass(cls)
    for call in (lambda: t + 1, lambda: t.add(1), lambda: lib.add(t, 1), lambda: t.shape):
        call()
    found = [func for func, *_ in log]
    methods = {lib.Tensor.add: "method", lib.add: "function", lib.Tensor.shape.__get__: "attribute"}
    assert [methods[f] for f in found] == ["method", "method", "function", "attribute"]
    assert lib.Tensor.add != lib.add
    assert found[3] == lib.Tensor.shape.__get__
    assert found[3] != lib.Tensor.dtype.__get__
    resolve = overriding(lib).resolve_name
    assert resolve(lib.Tensor.add) == "torch.Tensor.add"
    assert resolve(lib.add) == "torch.add"
    assert overriding(lib).is_tensor_method_or_property(lib.Tensor.shape.__get__)


def test_overridable_functions_are_listed(lib):
    found = overriding(lib).get_overridable_functions()
    assert lib.add in found[lib]
    assert lib.Tensor.add in found[lib.Tensor]
    assert overriding(lib).resolve_name(lib.Tensor.T.__get__) == "torch.Tensor.T.__get__"
    assert lib.nn.functional.relu in found[lib.nn.functional]
    ignored = overriding(lib).get_ignored_functions()
    assert lib.is_tensor in ignored
    assert lib.Tensor.__new__ in ignored
    assert lib.add not in ignored
    assert not any(function in ignored for functions in found.values() for function in functions)


def test_stand_ins_take_what_the_functions_take():
    compared = 0
    for function, stand_in in tp.overrides.get_testing_overrides().items():
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # a slot of a type
            continue
        assert inspect.signature(stand_in) == signature
        assert stand_in() == -1
        compared += 1
    assert compared > 1000


def test_a_function_of_ones_own(lib):
    o = overriding(lib)

    def double(a):
        if o.has_torch_function_unary(a):
            return o.handle_torch_function(double, (a,), a)
        return a * 2

    cls, log = logged(lib)
    t = lib.ones(2).as_subclass(cls)
    assert type(double(t)) is cls
    assert [f for f, *_ in log] == [double, lib.Tensor.mul][:1]
    assert type(double(lib.ones(2))) is lib.Tensor


class _Counting:
    def __init__(self, lib, log):
        self.log = log

    def of(self, lib):
        log = self.log

        class Mode(overriding(lib).TorchFunctionMode):
            def __init__(self, name):
                super().__init__()
                self.name = name

            def __torch_function__(self, func, types, args=(), kwargs=None):
                log.append((self.name, func.__name__))
                return func(*args, **(kwargs or {}))

        return Mode


def test_modes_meet_all_calls_and_stack(lib):
    log = []
    mode = _Counting(lib, log).of(lib)
    x = lib.ones(2)
    with mode("outer") as entered:
        assert entered.name == "outer"
        lib.zeros(2)
        with mode("inner"):
            lib.exp(x)
            lib.tensor([1.0])
    lib.exp(x)
    assert log == [
        ("outer", "zeros"),
        ("inner", "exp"),
        ("outer", "exp"),
        ("inner", "tensor"),
        ("outer", "tensor"),
    ]


def test_a_mode_may_refuse_and_replace(lib):
    class Zeros(overriding(lib).TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is lib.ones:
                return lib.zeros(*args, **(kwargs or {}))
            return NotImplemented if func is lib.exp else func(*args, **(kwargs or {}))

    with Zeros():
        assert lib.ones(3).tolist() == [0.0] * 3
        with pytest.raises(TypeError, match="Multiple dispatch failed"):
            lib.exp(lib.zeros(1))
    with overriding(lib).BaseTorchFunctionMode():
        assert lib.ones(1).item() == 1.0


def test_disabled(lib):
    cls, log = logged(lib)
    t = lib.ones(2).as_subclass(cls)
    modes = []
    with disabled(lib)():
        assert type(t + 1) is lib.Tensor
        assert type(lib.exp(t)) is lib.Tensor
        assert not overriding(lib).has_torch_function((t,))
        with _Counting(lib, modes).of(lib)("mode"):
            lib.exp(t)
    assert not log
    assert modes == [("mode", "exp")]
    assert type(t + 1) is cls


# --- subclasses as people write them -------------------------------------------------------------


def boxes(lib):
    """Return a class like torchvision's tv_tensors: results are plain unless a call must keep it."""

    class Box(lib.Tensor):
        @classmethod
        def _wrap(cls, tensor, *, format):
            box = tensor.as_subclass(cls)
            box.format = format
            return box

        def __new__(cls, data, *, format, dtype=None, device=None, requires_grad=None):
            tensor = lib.as_tensor(data, dtype=dtype, device=device).requires_grad_(
                bool(requires_grad)
            )
            return cls._wrap(tensor, format=format)

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if not all(issubclass(cls, t) for t in types):
                return NotImplemented
            with disabled(lib)():
                output = func(*args, **kwargs or {})
            keep = {
                lib.Tensor.clone,
                lib.Tensor.to,
                lib.Tensor.detach,
                lib.Tensor.requires_grad_,
            }
            if func in keep and isinstance(args[0], cls):
                return cls._wrap(output, format=args[0].format)
            if isinstance(output, cls):
                return output.as_subclass(lib.Tensor)
            return output

        @property
        def area(self):
            return (self[..., 2] * self[..., 3]).sum()

        @property
        def device(self):
            with disabled(lib)():
                return super().device

        def __deepcopy__(self, memo):
            return type(self)._wrap(
                self.detach().clone().requires_grad_(self.requires_grad), format=self.format
            )

    return Box


def test_a_class_that_gives_itself_up(lib):
    Box = boxes(lib)
    box = Box([[0, 0, 2, 3], [1, 1, 4, 5]], format="xywh", dtype=lib.float32)
    assert type(box + 1) is lib.Tensor
    assert type(box[0]) is lib.Tensor
    for call in (
        box.clone,
        box.detach,
        lambda: box.to(lib.float64),
        lambda: box.requires_grad_(False),
        lambda: copy.deepcopy(box),
    ):
        assert type(call()) is Box
        assert call().format == "xywh"
    assert box.area.item() == 26.0
    assert type(box.area) is lib.Tensor
    assert type(box.add_(1)) is lib.Tensor
    assert type(box) is Box
    assert box.device.type == "cpu"
    assert tuple(box.shape) == (2, 4)
    assert type(lib.stack([box, box])) is lib.Tensor


class Pickled(tp.Tensor):
    pass


def test_pickle_and_copies_keep_class_and_attributes():
    t = tp.tensor([1.0, 2.0]).as_subclass(Pickled)
    t.note = ["a"]
    for made in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t), copy.copy(t)):
        assert type(made) is Pickled
        assert made.note == ["a"]
        assert made.tolist() == [1.0, 2.0]
    again = copy.deepcopy(t)
    again.note.append("b")
    again.add_(1)
    assert t.note == ["a"]
    assert t.tolist() == [1.0, 2.0]
    shallow = copy.copy(t)
    shallow.add_(1)
    assert t.tolist() == [2.0, 3.0]


def test_gradients_flow_through_a_subclass(lib):
    class Own(lib.Tensor):
        pass

    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = x.as_subclass(Own)
    assert not y.is_leaf
    assert y.requires_grad
    z = (y * y).sum()
    assert type(z) is Own
    z.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    assert type(x.grad) is lib.Tensor
    leaf = lib.tensor([1.0, 3.0]).as_subclass(Own).requires_grad_()
    assert leaf.is_leaf
    assert type(leaf) is Own
    (leaf**3).sum().backward()
    assert leaf.grad.tolist() == [3.0, 27.0]
    assert type(leaf.grad) is lib.Tensor
    (grad,) = lib.autograd.grad((leaf**3).sum(), leaf, create_graph=True)
    (second,) = lib.autograd.grad(grad.sum(), leaf)
    assert second.tolist() == [6.0, 18.0]


def test_backward_is_no_call_of_the_users(lib):
    cls, log = logged(lib)
    t = lib.tensor([1.0, 2.0]).as_subclass(cls).requires_grad_()
    out = (t.exp() * t).sum()
    log.clear()
    lib.autograd.grad(out, t, create_graph=True)
    lib.Tensor.backward(out)
    assert [f.__name__ for f, *_ in log] in ([], ["backward"], ["grad"], ["grad", "backward"])


def test_writing_in_place_keeps_the_object(lib):
    class Own(lib.Tensor):
        pass

    plain = lib.zeros(3)
    t = plain.as_subclass(Own)
    t.tag = 1
    assert t.add_(2) is t
    assert t.mul_(3) is t
    t += 1
    t[0] = 5.0
    lib.add(t, 1, out=t)
    assert type(t) is Own
    assert t.tag == 1
    assert plain.tolist() == [6.0, 8.0, 8.0]
    assert plain._version == t._version


def test_an_error_names_a_write_through_the_subclass(lib):
    class Own(lib.Tensor):
        pass

    x = lib.ones(2, requires_grad=True)
    y = x * 1
    out = y.exp()
    out.as_subclass(Own).add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation|in place|in-place"):
        out.sum().backward()


def test_parameters_and_their_subclasses(lib):
    class Weight(lib.nn.Parameter):
        pass

    class Watched(lib.nn.Parameter):
        log: ClassVar = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.log.append(func.__name__)
            with disabled(lib)():
                return func(*args, **(kwargs or {}))

    weight = Weight(lib.ones(2))
    assert type(weight) is Weight
    assert weight.requires_grad
    assert type(weight * 2) is lib.Tensor
    assert type(weight.data) is lib.Tensor
    module = lib.nn.Module()
    module.weight = weight
    module.watched = Watched(lib.ones(2))
    assert [name for name, _ in module.named_parameters()] == ["weight", "watched"]
    Watched.log.clear()
    assert type(module.watched + weight) is lib.Tensor
    assert Watched.log == ["add"]
    assert lib.Tensor._make_subclass(Weight, lib.ones(2), True).requires_grad


def test_modules_take_subclasses(lib):
    class Own(lib.Tensor):
        pass

    lib.manual_seed(0)
    net = lib.nn.Sequential(
        lib.nn.Conv2d(1, 2, 3), lib.nn.ReLU(), lib.nn.Flatten(), lib.nn.Linear(8, 2)
    )
    x = lib.ones(1, 1, 4, 4)
    out = net(x.as_subclass(Own))
    assert type(out) is Own
    assert out.tolist() == net(x).tolist()
    out.sum().backward()
    assert all(p.grad is not None for p in net.parameters())


def test_attributes_of_a_class_go_before_those_of_tensor(lib):
    class Mixed:
        def dim(self):
            return "mixed"

    class Own(Mixed, lib.Tensor):
        scale = 3

        @property
        def shape(self):
            return "shape"

        def sum(self, *args):
            return super().sum(*args) * self.scale

    t = lib.ones(2).as_subclass(Own)
    t.extra = 4
    assert (t.dim(), t.shape, t.sum().item(), t.extra) == ("mixed", "shape", 6.0, 4)


# --- what it costs --------------------------------------------------------------------------------


def test_nothing_is_looked_for_once_the_last_one_is_gone():
    def counted():
        settle()  # a thread's own count goes when somebody looks
        return dispatch_state.layers_active

    gc.collect()
    before = counted()
    t = tp.ones(2).as_subclass(Kept)
    assert counted() == before + 1
    u = t + 1
    del t
    assert counted() == before + 1
    del u
    assert counted() == before
    parameter = tp.nn.Parameter(tp.ones(2))
    assert counted() == before
    assert parameter.requires_grad


def test_the_numbers_drawn_do_not_depend_on_others():
    def drawn():
        tp.manual_seed(3)
        return tp.nn.functional.dropout(tp.ones(50), 0.5).tolist()

    expected = drawn()
    t = tp.ones(2).as_subclass(Kept)
    assert drawn() == expected
    assert t.shape == (2,)


@pytest.mark.parametrize("name", ["values", "indices", "diag", "size", "sum", "t"])
@pytest.mark.parametrize("wrapper", [False, True])
def test_attributes_of_a_tensor_come_before_methods(name, wrapper):
    """A class that keeps its parts under the name of a method finds them there, as in any class."""

    class Own(tp.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

        if wrapper:

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                return func

    x = Own._make_wrapper_subclass(Own, (2,)) if wrapper else tp.ones(2).as_subclass(Own)
    assert callable(getattr(x, name))
    setattr(x, name, "part")
    assert getattr(x, name) == "part"
    delattr(x, name)
    assert callable(getattr(x, name))


@pytest.mark.parametrize("base", ["plain", "wrapper"])
def test_a_class_may_say_what_stands_in_its_representation(base):
    class Own(tp.Tensor):
        if base == "wrapper":

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                return func

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

        def __repr__(self):
            return super().__repr__(tensor_contents=f"part={len(self.shape)}")

    x = Own._make_wrapper_subclass(Own, (2,)) if base == "wrapper" else tp.ones(2).as_subclass(Own)
    assert repr(x).startswith("Own(part=1")


def test_a_parameter_of_a_class_of_its_own_says_so():
    class Own(tp.Tensor):
        pass

    x = tp.ones(2).as_subclass(Own)
    assert repr(x) == "Own([1., 1.])"
    assert repr(tp.nn.Parameter(x)) == "Parameter(Own([1., 1.], requires_grad=True))"
    assert repr(tp.nn.Parameter(tp.ones(2))).startswith("Parameter containing:")


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_are_of_the_class_of_what_is_differentiated(create_graph):
    class Own(tp.Tensor):
        pass

    seen = []

    class Watching(tp.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    for cls in (Own, Watching):
        x, p = tp.ones(3).as_subclass(cls).requires_grad_(), tp.ones(3, requires_grad=True)
        gradients = tp.autograd.grad((x * x * p).sum(), [p, x], create_graph=create_graph)
        assert [type(g) for g in gradients] == [cls, cls]
        assert [g.tolist() for g in gradients] == [[1.0] * 3, [2.0] * 3]
        if create_graph:
            (second,) = tp.autograd.grad(gradients[1].sum(), x)
            assert second.tolist() == [2.0] * 3
        (x * p).sum().backward()
        assert type(x.grad) is type(p.grad) is tp.Tensor  # as in torch
    assert seen.count(tp.autograd.grad) == 1 + create_graph
    plain = tp.nn.Parameter(tp.ones(3))
    assert type(tp.autograd.grad(plain.sum(), plain)[0]) is tp.Tensor


def test_modes_meet_grad():
    calls = []

    class Watch(tp.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            calls.append((func, args, kwargs))
            return func(*args, **(kwargs or {}))

    x = tp.ones(2, requires_grad=True)
    y = x.sum()
    with Watch():
        (gradient,) = tp.autograd.grad(y, x, allow_unused=True)
    assert gradient.tolist() == [1.0, 1.0]
    ((func, args, kwargs),) = calls
    assert func is tp.autograd.grad
    assert args == ((y,), (x,))
    assert kwargs["allow_unused"] is True


class Elsewhere:
    """No tensor; notes the calls that are handed to it."""

    def __init__(self, answer="made"):
        self.calls, self.answer = [], answer

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append((func.__name__, types))
        return self.answer


_PLACES = {
    "alone": lambda i: i,
    "in front": lambda i: (i, 0),
    "behind": lambda i: (0, i),
    "beside a slice": lambda i: (slice(1), i),
    "beside an index": lambda i: (tp.tensor([0, 1]), i),
}


@pytest.mark.parametrize("place", _PLACES)
def test_what_is_no_tensor_indexes(place):
    x = tp.zeros(2, 3)
    other = Elsewhere()
    key = _PLACES[place](other)
    assert x[key] == "made"
    x[key] = 1.0
    x[key] = tp.ones(1)
    assert other.calls == [(name, (Elsewhere,)) for name in ("__getitem__", *["__setitem__"] * 2)]
    assert not x.any()
    with tp.overrides.DisableTorchFunction(), pytest.raises(IndexError, match="got Elsewhere"):
        x[key]
    other.answer = NotImplemented
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for '__getitem__'"):
        x[key]


@pytest.mark.parametrize("key", [0, (0, 1), slice(1), [0, 1], tp.tensor([True, False]), ...])
def test_what_is_no_tensor_is_assigned(key):
    x = tp.zeros(2, 3)
    other = Elsewhere()
    x[key] = other
    assert other.calls == [("__setitem__", (Elsewhere,))]
    assert not x.any()
    with tp.overrides.DisableTorchFunction(), pytest.raises(TypeError, match="can't assign a"):
        x[key] = other
