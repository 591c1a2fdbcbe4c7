"""The dispatcher and automatic differentiation of tensorplug, rebuilt in 300 lines of code that run.

Run it (``python docs/build_your_own.py``) or read it from top to bottom. Everything has the name that it has
in tensorplug, where it is longer because it is fast, safe and complete; nothing here is imported from there.
NumPy stands in for the hardware. The last part checks all of it.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

# --- 1 ---------------------------------------------------------------------------------------------
# An op is a name with a declaration. Nothing yet says how it is computed, or where.


class Op:
    """A named function over tensors.

    A *primitive* needs a kernel from each device; its function is the rule that gives the output's shape. A
    *composite* is written in other ops: its function is the decomposition, and runs on every device at once.
    """

    def __init__(self, name: str, kind: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.kind = kind
        self.function = function
        self.index = len(OPS)  # its place in each table of kernels
        self.derivative: dict[str, Callable[..., Any]] | None = None  # its derivative, see part 4
        code = function.__code__
        self.parameters = code.co_varnames[: code.co_argcount]
        OPS[name] = self
        for key in KEYS.values():
            key.reset()  # each table gets a slot for it

    def __call__(self, *args: Any) -> Any:
        return through_layers(self, args)


OPS: dict[str, Op] = {}


def primitive(function: Callable[..., Any]) -> Op:
    return Op(function.__name__, "primitive", function)


def composite(function: Callable[..., Any]) -> Op:
    return Op(function.__name__, "composite", function)


# --- 2 ---------------------------------------------------------------------------------------------
# A kernel computes one op on one device for some dtypes. Plugins hand kernels over; resolution finds
#    the best one, once; after that a call is a look-up in a list.


@dataclass
class Kernel:
    """A function over raw arrays, with what says when it is taken."""

    op: str
    device: str
    function: Callable[..., Any]
    dtypes: tuple[str, ...] | None = None  # None: any
    priority: int = 0


class DispatchKey:
    """The pair (device, dtype) of a tensor: one object per pair, with a table of kernels.

    A slot that was never used holds a *stub*, which finds the kernel, puts it into the slot in its own place,
    and calls it. So the hot path asks no question at all, not even whether the kernel is there.
    """

    def __init__(self, device: str, dtype: str) -> None:
        self.device, self.dtype = device, dtype
        self.kernels: list[Callable[..., Any]] = []
        self.reset()

    def reset(self) -> None:
        self.kernels = [make_stub(self, op) for op in OPS.values()]


KEYS: dict[tuple[str, str], DispatchKey] = {}
KERNELS: list[Kernel] = []


def dispatch_key(device: str, dtype: str) -> DispatchKey:
    if (device, dtype) not in KEYS:
        KEYS[device, dtype] = DispatchKey(device, dtype)
    return KEYS[device, dtype]


def make_stub(key: DispatchKey, op: Op) -> Callable[..., Any]:
    def stub(*raw: Any) -> Any:
        kernel = choose(op, key)
        if kernel is None:
            raise NotImplementedError(f"no kernel for {op.name!r} on {key.device!r}, {key.dtype}")
        key.kernels[op.index] = kernel.function
        return kernel.function(*raw)

    return stub


def choose(op: Op, key: DispatchKey) -> Kernel | None:
    """The highest priority among those that name the dtype, then among those that take any."""
    fitting = [
        kernel
        for kernel in KERNELS
        if (kernel.op, kernel.device) == (op.name, key.device)
        and (kernel.dtypes is None or key.dtype in kernel.dtypes)
    ]
    return max(fitting, key=lambda k: (k.dtypes is not None, k.priority), default=None)


def register(*kernels: Kernel) -> None:
    """All or nothing; whatever is registered makes every table resolve anew."""
    for kernel in kernels:
        if kernel.op not in OPS:
            raise ValueError(f"kernel for an unknown op: {kernel.op!r}")
        for other in KERNELS:
            same = (kernel.op, kernel.device, kernel.dtypes, kernel.priority)
            if same == (other.op, other.device, other.dtypes, other.priority):
                raise ValueError(f"two kernels for {kernel.op!r} have the same priority")
    KERNELS.extend(kernels)
    for key in KEYS.values():
        key.reset()


# --- 3 ---------------------------------------------------------------------------------------------
# A tensor is a raw array and its key. Dispatch unwraps, calls the kernel, wraps, and lets the gradient
#    layer record. Layers see the calls before all that.


class Tensor:
    def __init__(self, array: Any, key: DispatchKey, requires_grad: bool = False) -> None:
        self.array, self.key = array, key
        self.requires_grad = requires_grad
        self.node: Node | None = None  # what made it, if that is to be differentiated
        self.grad: Tensor | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def __add__(self, other: "Tensor") -> "Tensor":
        return add(self, other)

    def __mul__(self, other: "Tensor") -> "Tensor":
        return mul(self, other)

    def __neg__(self) -> "Tensor":
        return neg(self)

    def backward(self, create_graph: bool = False) -> None:
        run_backward(self, create_graph)


def tensor(
    values: Any, device: str = "cpu", dtype: str = "float64", requires_grad: bool = False
) -> Tensor:
    return Tensor(np.asarray(values, dtype), dispatch_key(device, dtype), requires_grad)


Layer = Callable[[Op, tuple[Any, ...], Callable[..., Any]], Any]
LAYERS: list[Layer] = []


@contextmanager
def active(layer: Layer) -> Iterator[None]:
    LAYERS.append(layer)
    try:
        yield
    finally:
        LAYERS.remove(layer)


def through_layers(op: Op, args: tuple[Any, ...]) -> Any:
    if not LAYERS:
        return run(op, args)
    layer = LAYERS.pop()  # while a layer works, its own ops meet only the layers below it
    try:
        return layer(op, args, lambda *args: through_layers(op, args))
    finally:
        LAYERS.append(layer)


def run(op: Op, args: tuple[Any, ...]) -> Any:
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    key = tensors[0].key
    if any(t.key is not key for t in tensors):
        raise RuntimeError(f"{op.name}: tensors of different kinds")
    tracked = RECORDING[0] and any(t.requires_grad for t in tensors)
    if op.kind == "composite" and (choose(op, key) is None or (tracked and op.derivative is None)):
        return op.function(*args)
    raw = [arg.array if isinstance(arg, Tensor) else arg for arg in args]
    if op.kind == "primitive":
        expected = op.function(*raw)  # the declaration checks the arguments, and knows the shape
    result = Tensor(np.asarray(key.kernels[op.index](*raw)), key)
    if op.kind == "primitive" and result.shape != expected:
        raise RuntimeError(f"{op.name}: the kernel returned shape {result.shape}, not {expected}")
    if tracked:
        record(op, args, result)
    return result


# Some ops, declared once for every device there will ever be.


@primitive
def add(input: Any, other: Any) -> Any:
    return np.broadcast_shapes(input.shape, other.shape)


@primitive
def mul(input: Any, other: Any) -> Any:
    return np.broadcast_shapes(input.shape, other.shape)


@primitive
def neg(input: Any) -> Any:
    return input.shape


@primitive
def exp(input: Any) -> Any:
    return input.shape


@primitive
def sum_to(input: Any, shape: Any) -> Any:
    """Sum over the dimensions that broadcasting added: the adjoint of expand."""
    return shape


@primitive
def expand(input: Any, shape: Any) -> Any:
    return np.broadcast_shapes(input.shape, shape)


@composite
def sinh(input: Any) -> Any:
    half = tensor(0.5, input.key.device, input.key.dtype)
    return (exp(input) + -exp(-input)) * half


def sum_to_kernel(input: Any, shape: tuple[int, ...]) -> Any:
    input = input.sum(tuple(range(input.ndim - len(shape))))
    kept = tuple(n for n, size in enumerate(shape) if size == 1 and input.shape[n] != 1)
    return input.sum(kept, keepdims=True)


register(
    Kernel("add", "cpu", np.add),
    Kernel("mul", "cpu", np.multiply),
    Kernel("neg", "cpu", np.negative),
    Kernel("exp", "cpu", np.exp),
    Kernel("sum_to", "cpu", sum_to_kernel),
    Kernel("expand", "cpu", np.broadcast_to),
)

# --- 4 ---------------------------------------------------------------------------------------------
# A derivative is a formula per argument, in ordinary ops. The names of its parameters say what is saved.
#    `record` makes a node of each call; `run_backward` passes gradients along them, without recursion.

RECORDING = [True]


@contextmanager
def no_grad() -> Iterator[None]:
    before, RECORDING[0] = RECORDING[0], False
    try:
        yield
    finally:
        RECORDING[0] = before


def derivative(op: str, **formulas: Callable[..., Any]) -> None:
    OPS[op].derivative = formulas


class Node:
    """One recorded call: what its formulas need, and where their gradients go."""

    counter = itertools.count()

    def __init__(self, op: Op, args: tuple[Any, ...], result: Tensor) -> None:
        self.order = next(Node.counter)  # a node runs before everything that was recorded earlier
        self.name = op.name
        assert op.derivative is not None, f"op {op.name!r} has no derivative"
        known = {**dict(zip(op.parameters, args, strict=True)), "result": result}
        shapes = {f"{n}_shape": x.shape for n, x in known.items() if isinstance(x, Tensor)}
        self.edges: list[tuple[Tensor, Callable[..., Any], dict[str, Any]]] = []
        for argument, formula in op.derivative.items():
            target = known[argument]
            if target.requires_grad:
                code = formula.__code__
                names = code.co_varnames[1 : code.co_argcount]  # the first is the gradient
                saved = {n: known.get(n, shapes.get(n)) for n in names}
                self.edges.append((target, formula, saved))


def record(op: Op, args: tuple[Any, ...], result: Tensor) -> None:
    result.requires_grad = True
    result.node = Node(op, args, result)


def run_backward(root: Tensor, create_graph: bool) -> None:
    gradients = {id(root): tensor(np.ones(root.shape), root.key.device, root.key.dtype)}
    assert root.node is not None, "backward() needs a tensor that was computed from others"
    waiting = {root.node.order: root}
    with nullcontext() if create_graph else no_grad():
        while waiting:
            # The latest node first: by then all that was made from its result has run.
            result = waiting.pop(max(waiting))
            g = gradients.pop(id(result))
            assert result.node is not None
            for target, formula, saved in result.node.edges:
                gradient = formula(g, **saved)
                if gradient.shape != target.shape:
                    # The engine undoes broadcasting, no formula does.
                    gradient = sum_to(gradient, target.shape)
                if target.node is None:  # a leaf
                    target.grad = gradient if target.grad is None else target.grad + gradient
                    continue
                known = gradients.get(id(target))
                gradients[id(target)] = gradient if known is None else known + gradient
                waiting[target.node.order] = target


derivative("add", input=lambda g: g, other=lambda g: g)
derivative("mul", input=lambda g, other: g * other, other=lambda g, input: g * input)
derivative("neg", input=lambda g: -g)
derivative("exp", input=lambda g, result: g * result)
derivative("expand", input=lambda g, input_shape: sum_to(g, input_shape))
derivative("sum_to", input=lambda g, input_shape: expand(g, input_shape))

# --- 5 ---------------------------------------------------------------------------------------------
# It works. What a stranger adds needs no line above to change.


def check_dispatch() -> None:
    x = tensor([1.0, 2.0])
    stub = x.key.kernels[add.index]
    assert (x + x).array.tolist() == [2.0, 4.0]
    assert x.key.kernels[add.index] is not stub, "the stub put the kernel into its place"
    calls: list[str] = []

    def count(op: Op, args: tuple[Any, ...], proceed: Callable[..., Any]) -> Any:
        calls.append(op.name)
        return proceed(*args)

    with active(count):
        x + x * x
    assert calls == ["mul", "add"]

    @primitive
    def tanh(input: Any) -> Any:
        return input.shape

    try:
        tanh(x)
    except NotImplementedError as error:
        assert "no kernel for 'tanh' on 'cpu', float64" in str(error)
    else:
        raise AssertionError("nothing computes tanh yet")
    register(Kernel("tanh", "cpu", np.tanh))
    assert tanh(x).array.tolist() == np.tanh(x.array).tolist()


def check_gradients() -> None:
    x = tensor([0.5, -1.0], requires_grad=True)
    (x * x + exp(x)).backward()
    np.testing.assert_allclose(x.grad.array, 2 * x.array + np.exp(x.array))
    row = tensor([[1.0, 2.0, 3.0]], requires_grad=True)  # broadcast, and undone
    (row * tensor(np.ones((4, 3)))).backward()
    assert row.grad.array.tolist() == [[4.0, 4.0, 4.0]]


def check_second_derivative() -> None:
    x = tensor(3.0, requires_grad=True)
    (x * x * x).backward(create_graph=True)
    first, x.grad = x.grad, None
    first.backward()  # formulas are ops, so they were recorded too
    assert first.array == 27.0
    assert x.grad.array == 18.0


def check_deep_graphs() -> None:
    x = tensor(1.0, requires_grad=True)
    y = x
    for _ in range(5000):  # far beyond what recursion would stand
        y = y + x
    y.backward()
    assert x.grad.array == 5001.0


def check_plugin() -> None:
    """A device, a kernel for a composite, and its derivative in one piece, from outside."""
    for kernel in [k for k in KERNELS if k.device == "cpu"]:
        register(Kernel(kernel.op, "abacus", kernel.function))
    x = tensor([0.5, 1.0], "abacus", requires_grad=True)
    sinh(x).backward()  # through its decomposition
    np.testing.assert_allclose(x.grad.array, np.cosh(x.array))

    register(Kernel("sinh", "abacus", np.sinh, dtypes=("float64",), priority=10))
    derivative("sinh", input=lambda g, input: g * (exp(input) + -sinh(input)))
    x.grad = None
    y = sinh(x)
    assert y.node.name == "sinh", "one node, where the decomposition had six"
    y.backward()
    np.testing.assert_allclose(x.grad.array, np.cosh(x.array))
    try:
        x + tensor([1.0, 1.0])
    except RuntimeError as error:
        assert "different kinds" in str(error)
    else:
        raise AssertionError("tensors of two devices met")


if __name__ == "__main__":
    check_dispatch()
    check_gradients()
    check_second_derivative()
    check_deep_graphs()
    check_plugin()
    print("all checks passed")
