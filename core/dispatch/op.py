"""Op, one declared operator, and Spec, the canonical form of one call."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, cast

from ..device.dtypes import DType
from ..errors import RegistrationError
from ..tensor.base import TensorBase
from ..tensor.shapes import Shape
from .keys import DispatchKey, dispatch_key

if TYPE_CHECKING:
    from ..device.device import Device


class Spec:
    """One call of a primitive: canonical kernel arguments and the outputs' metadata.

    Parameters
    ----------
    values : tuple
        The kernel's arguments in the declared order: tensors, lists of tensors, None, plain values.
    shape : tuple of int or None
        The output's shape; None where only the data decides (``nonzero``).
    dtype : DType
        The output's dtype.
    key : DType, optional
        The dtype under which the kernel is looked up; by default that of the first tensor.
    device : Device, optional
        Where the kernel runs; by default the device of the first tensor.
    outputs : tuple of pairs, optional
        For an op with several outputs: the shape and dtype of each, instead of `shape` and `dtype`.
    """

    __slots__ = ("key", "outputs", "values")

    def __init__(
        self,
        values: tuple[Any, ...],
        shape: Shape | None = None,
        dtype: DType | None = None,
        *,
        key: DType | None = None,
        device: Device | None = None,
        outputs: tuple[tuple[Shape | None, DType], ...] | None = None,
    ) -> None:
        self.values = values
        self.outputs = ((shape, cast(DType, dtype)),) if outputs is None else outputs
        if device is None or key is None:
            first: Any = values[0] if values else None
            if not isinstance(first, TensorBase):
                first = first_tensor(values)
            if first is None:
                raise TypeError(f"no tensor among the arguments {values!r}")
            tensor_key = first._key
            self.key: DispatchKey = (
                tensor_key if key is None or key is tensor_key.dtype else tensor_key.with_dtype(key)
            )
        else:
            self.key = dispatch_key(device, key)


def first_tensor(values: Iterable[Any]) -> TensorBase | None:
    """Return the first tensor among values and lists of values."""
    for value in values:
        if isinstance(value, TensorBase):
            return value
        if isinstance(value, (tuple, list)):
            found = first_tensor(value)
            if found is not None:
                return found
    return None


class Delegated(Spec):
    """What a rule returns where another op serves this form of the call: that op's result.

    Of ``Delegated.to(function, *args)`` the call is still to be made, and calls alike go straight to it.
    """

    __slots__ = ("_result", "args", "function")

    def __init__(self, result: Any) -> None:
        self._result = result
        self.function: Callable[..., Any] | None = None
        self.args: tuple[Any, ...] = ()

    @classmethod
    def to(cls, function: Callable[..., Any], *args: Any) -> Delegated:
        """Return the delegation to a function, with positional arguments of the call and plain values."""
        delegated = cls(None)
        delegated.function = function
        delegated.args = args
        return delegated

    @property
    def result(self) -> Any:
        """What the other op returns."""
        return self._result if self.function is None else self.function(*self.args)


#: Whether an op is computed by kernels alone, or has a decomposition.
OpKind = Literal["primitive", "composite"]


class Op:
    """A declared operator.

    Attributes
    ----------
    name : str
        The name in the registry; ``"package.name"`` for an extension's op.
    kind : {"primitive", "composite"}
        Whether a backend must supply a kernel or may.
    function : callable
        The declared Python function: of a primitive its rule, of a composite its decomposition.
    declaration : callable
        What has the op's parameters: `function`, or that of the op that this one is declared like.
    canonical : callable or None
        Of a composite: its rule, which turns a call's arguments into canonical ones.
    call : callable
        What users call.
    parameters : tuple of str
        The names of the kernel's arguments; formulas refer to the same names.
    names : tuple of str
        The names of the declared function's parameters.
    pointwise : bool
        Whether each output element depends on the broadcast inputs' elements at its index only.
    masks : tuple of int
        The indices of a pointwise op's arguments that are of bool, whatever the others are.
    checked : bool
        Of a pointwise op of two arguments: whether its rule has to see negative integers as the second.
    scales : bool
        Whether a pointwise op multiplies or divides: its rule has to see a number that half precision
        would round, because torch computes with that in float32.
    elementwise : bool
        The same where `pointwise` says too much: of a composite, whose result then has the promoted dtype and
        the broadcast shape, and of a primitive with plain values among its arguments.
    fills : bool
        Whether an ``out=`` of as many elements as the result keeps its shape, and is filled row by row.
    keeps_order : bool
        Of a primitive: whether its result has the order in memory of its first argument, as a copy has.
    keeps_format : bool
        Of a composite: whether its result is in the memory format for images that its first argument is in.
    rows : bool
        Of a composite: whether its result lies row by row, in whatever order its first argument is.
    view : bool
        Whether the output shares the input's memory.
    outputs : tuple of str
        Names of the outputs; ``("result",)`` for a single one.
    named : type or None
        The named tuple in which several outputs are returned, if they are.
    layout : bool
        Whether the result has all elements of the first argument, in another layout.
    reads_layout : bool
        Whether a call depends on where in memory, and in which strides, its arguments are.
    returns_argument : bool
        Whether a kernel may return an array that it was given.
    random : bool
        Whether it draws random numbers.
    pure : bool
        Of a composite: whether its body is a function of its arguments, to be replayed.
    inplace_of : Op or None
        Of an in-place variant, as layers see it: the op of which it is one.
    delegates : str
        Which other ops serve which forms of a call, for ``explain``.
    scaled_sign : int
        The sign with which the factor ``alpha`` goes to `scaled`.
    mixed : bool
        Whether a composite's kernel takes floating-point tensors of several dtypes.
    writes : tuple of int
        The indices of the arguments that a call changes; such an op has no outputs.
    updates : tuple of int
        The indices of the arguments that a call writes besides returning results.
    cacheable : bool
        Of a composite: whether its calls are cached.
    plans : CallCache or None
        Of a view op that can be called: the plans of its calls, see :mod:`.view_calls`.
    promotions : CallCache or None
        Of a pointwise op of two arguments: what replays its calls of two dtypes, see :mod:`.replay`.
    owner : str
        The plugin that registered the op.
    """

    __slots__ = (
        "_signature",
        "aliases",
        "arity",
        "cacheable",
        "call",
        "canonical",
        "checked",
        "declaration",
        "declared",
        "defaults",
        "delegates",
        "derivative",
        "elementwise",
        "fills",
        "flags",
        "floats",
        "function",
        "index",
        "inplace",
        "inplace_body",
        "inplace_of",
        "integers",
        "keeps_format",
        "keeps_order",
        "kind",
        "layout",
        "layouts",
        "leading",
        "masks",
        "method",
        "mixed",
        "name",
        "named",
        "names",
        "needed",
        "numbers",
        "optional",
        "outputs",
        "overridden",
        "owner",
        "parameters",
        "plans",
        "pointwise",
        "promotions",
        "pure",
        "random",
        "reads_layout",
        "reflected",
        "returns_argument",
        "rows",
        "scaled",
        "scaled_sign",
        "scales",
        "sequences",
        "strings",
        "updates",
        "view",
        "writes",
    )  # fmt: skip

    def __init__(self, name: str, index: Any = None) -> None:
        self.name = name
        self.index: int = index
        self.declared = False
        self.kind: OpKind = "primitive"
        self.function: Callable[..., Any] = _undeclared
        self.declaration: Callable[..., Any] = _undeclared
        self.canonical: Callable[..., Any] | None = None
        # How many canonical arguments the decomposition takes by position; the rest goes by name.
        self.leading = 0
        self.call: Callable[..., Any] = _undeclared
        self.parameters: tuple[str, ...] = ()
        self.names: tuple[str, ...] = ()
        # For a quick bind(): the parameters' defaults, and how many have one; None where some parameter
        # collects the rest of the arguments.
        self.defaults: tuple[Any, ...] | None = None
        self.optional = 0
        self.arity = 0
        self.pointwise = False
        self.masks: tuple[int, ...] = ()
        self.checked = False
        self.scales = False
        # Of one that scales: what the operator calls with a number as its first operand, if not the op.
        self.reflected: Callable[..., Any] | None = None
        self.elementwise = False
        self.fills = False
        self.keeps_order = False
        self.keeps_format = False
        self.rows = False
        self.view = False
        self.outputs: tuple[str, ...] = ("result",)
        self.named: type[Any] | None = None
        self.layout = False
        self.reads_layout = False
        self.returns_argument = False
        self.random = False
        self.pure = False
        self.delegates = ""
        self.inplace_of: Op | None = None
        self.inplace: str | None = None
        # The positions and names of the parameters that are ints, of those that are floats, and so on.
        self.integers: tuple[tuple[int, str], ...] = ()
        self.floats: tuple[tuple[int, str], ...] = ()
        self.numbers: tuple[tuple[int, str], ...] = ()  # floats too
        self.flags: tuple[tuple[int, str], ...] = ()
        self.layouts: tuple[tuple[int, str], ...] = ()
        self.sequences: tuple[tuple[int, str], ...] = ()
        self.strings: tuple[tuple[int, str], ...] = ()
        # Those among all these that None does not stand for.
        self.needed: frozenset[str] = frozenset()
        # The indices of the arguments that a call writes into; such an op returns nothing.
        self.writes: tuple[int, ...] = ()
        self.updates: tuple[int, ...] = ()
        self.cacheable = True
        self.plans: Any = None
        self.promotions: Any = None
        # Of a composite: writes into its first argument, where that is better than computing aside.
        self.inplace_body: Callable[..., Any] | None = None
        # Of add and sub: the composite, with the factor third, that calls with alpha may go to.
        self.scaled: Op | None = None
        self.scaled_sign = 1
        self.method: str | None = None
        self.aliases: tuple[str, ...] = ()
        self.owner = ""
        # The derivative, as the autograd layer stores it; None until one is registered.
        self.derivative: Any = None
        self._signature: inspect.Signature | None = None
        # Of a composite: whether a kernel or a derivative may stand in for its body.
        self.overridden = False
        # Of a composite: whether its kernel takes floating-point tensors of several dtypes.
        self.mixed = False

    def __repr__(self) -> str:
        return f"<{self.kind} op {self.name}({', '.join(self.parameters)})>"

    @property
    def signature(self) -> inspect.Signature:
        """The declared signature."""
        if self._signature is None:
            self._signature = inspect.signature(self.declaration)
        return self._signature

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the call's arguments in the order of the parameters, defaults filled in.

        Raises
        ------
        TypeError
            As Python does for a call that does not fit the signature.
        """
        defaults = self.defaults
        if defaults is not None and not kwargs:
            missing = len(defaults) - len(args)
            if 0 <= missing <= self.optional:
                return args + defaults[len(args) :]
        present = getattr(self.function, "present", None)
        if present is not None:  # a former order of the arguments
            args, kwargs = present(args, kwargs)
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the canonical arguments of a composite's call, or what its rule delegated the call to."""
        if self.canonical is None:
            return self.bind(args, kwargs)
        return self.canonical(*args, **kwargs)

    def decompose(self, values: tuple[Any, ...]) -> Any:
        """Run a composite's decomposition with canonical arguments."""
        if self.canonical is not None and self.leading == len(values):
            return self.function(*values)
        args, kwargs = self.unbind(values)
        return self.function(*args, **kwargs)

    def unbind(self, values: Iterable[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return (args, kwargs) with which the declared function takes canonical arguments."""
        if self.canonical is not None:
            given = tuple(values)
            leading = self.leading
            return given[:leading], dict(
                zip(self.parameters[leading:], given[leading:], strict=True)
            )
        bound = inspect.BoundArguments(
            self.signature,
            OrderedDict(zip(self.signature.parameters, values, strict=True)),
        )
        return bound.args, bound.kwargs


def _undeclared(*args: Any, **kwargs: Any) -> Any:
    raise RegistrationError("this op was only named, never declared")
