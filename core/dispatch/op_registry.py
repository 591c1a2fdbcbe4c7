"""How an operator is declared; :mod:`.registered_ops` has all of them, :mod:`.op_names` their names.

An op is a typed, documented Python function with a decorator. Of a :func:`primitive` the body is the
shape and dtype rule: it checks the arguments and returns a :class:`Spec`. Of a :func:`composite` the
body is the decomposition into other ops. One declaration yields the function, the Tensor method, the
in-place variant, ``out=``, and the entry in the coverage matrix.

Examples
--------
A primitive whose kernel is called as ``kernel(input, dim, keepdim)``::

    @primitive("input, dim, keepdim")
    def amax(input: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False) -> Spec:
        dims = normalize_dims(dim, input.ndim, "amax")
        return Spec((input, dims, keepdim), reduced_shape(input._shape, dims, keepdim), input.dtype)
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from .declared_shapes import ShapeRule
from .op import Delegated, Op, OpKind, Spec, first_tensor
from .op_names import defined_by, find_op, get_op
from .registered_ops import all_ops, claim, handle, has_op, op_at, register_op, unregister_op
from .state import dispatch_state

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = [
    "Delegated",
    "Op",
    "Spec",
    "all_ops",
    "composite",
    "composite_like",
    "defined_by",
    "find_op",
    "first_tensor",
    "get_op",
    "handle",
    "has_op",
    "in_place",
    "op_at",
    "primitive",
    "primitive_tuple",
    "register_op",
    "unregister_op",
]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


def primitive(
    kernel: str,
    *,
    name: str | None = None,
    pointwise: bool = False,
    checked: bool = False,
    scales: bool = False,
    elementwise: bool = False,
    masks: str = "",
    view: bool = False,
    layout: bool = False,
    reads_layout: bool = False,
    returns_argument: bool = False,
    random: bool = False,
    delegates: str = "",
    inplace: bool = False,
    method: bool = True,
    aliases: tuple[str, ...] = (),
) -> Callable[[Callable[P, Spec]], Callable[P, Tensor]]:
    """Declare a primitive: an op that every backend supplies a kernel for.

    Parameters
    ----------
    kernel : str
        The names of the kernel's arguments, comma-separated: ``"input, dim, keepdim"``.
    name : str, optional
        The op's name; by default the function's.
    pointwise, checked, scales, elementwise, view, layout, reads_layout, returns_argument, random : bool
        See :class:`Op`.
    masks : str
        Of a pointwise op: the arguments that are of bool, whatever the others are.
    delegates : str
        Where the rule returns :class:`Delegated`: which other ops serve which forms, for ``explain``.
    inplace : bool
        Whether there is a variant ``name_`` that writes into its first argument.
    method : bool
        Whether Tensor gets a method of that name.
    aliases : tuple of str
        Further names for the same op.
    """

    def declare(function: Callable[P, Spec]) -> Callable[P, Tensor]:
        made: Any = _declare(
            function,
            "primitive",
            kernel,
            name,
            pointwise,
            view,
            ("result",),
            inplace,
            method,
            aliases,
            checked=checked,
        )
        op: Op = made.op
        _say_result(function, "Tensor")
        op.scales = scales
        op.elementwise = elementwise
        op.layout = layout
        op.reads_layout = reads_layout
        op.returns_argument = returns_argument
        op.random = random
        op.delegates = delegates
        if masks:
            op.masks = _positions(op, masks)
        return made

    return declare


@overload
def primitive_tuple(
    kernel: str,
    outputs: str,
    *,
    name: str | None = None,
    method: bool = False,
    aliases: tuple[str, ...] = (),
) -> Callable[[Callable[P, Spec]], Callable[P, tuple[Tensor, ...]]]: ...
@overload
def primitive_tuple(
    kernel: str,
    outputs: type[R],
    *,
    name: str | None = None,
    method: bool = False,
    aliases: tuple[str, ...] = (),
) -> Callable[[Callable[P, Spec]], Callable[P, R]]: ...
def primitive_tuple(
    kernel: str,
    outputs: str | type[Any],
    *,
    name: str | None = None,
    method: bool = False,
    aliases: tuple[str, ...] = (),
) -> Callable[[Callable[P, Spec]], Callable[P, Any]]:
    """Declare a primitive with several outputs, named in `outputs` (comma-separated).

    `outputs` may also be the class of the named tuple of them.
    """

    def declare(function: Callable[P, Spec]) -> Callable[P, Any]:
        made: Any = _declare(
            function,
            "primitive",
            kernel,
            name,
            False,
            False,
            _output_names(outputs),
            False,
            method,
            aliases,
        )
        if isinstance(outputs, str):
            _say_result(function, "tuple[Tensor, ...]")
        else:
            made.op.named = outputs
            _say_result(function, f"results.{outputs.__name__}")
        return made

    return declare


def _say_result(rule: Callable[..., Any], result: str) -> None:
    """Have ``help()`` tell what the op returns, which is not what its rule does."""
    rule.__annotations__["return"] = result


def composite(
    kernel: str | None = None,
    *,
    rule: Callable[..., Any] | None = None,
    shapes: str = "",
    name: str | None = None,
    elementwise: bool = False,
    keeps_format: bool = False,
    rows: bool = False,
    view: bool = False,
    layout: bool = False,
    reads_layout: bool = False,
    outputs: str | type[Any] = "result",
    writes: str = "",
    updates: str = "",
    inplace: bool = False,
    mixed: bool = False,
    random: bool = False,
    pure: bool | None = None,
    delegates: str = "",
    method: bool = True,
    aliases: tuple[str, ...] = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a composite: an op whose body, its decomposition, is written in other ops.

    It runs on every device. A backend may register a kernel for it all the same, called with the op's
    arguments in order (defaults filled in, tensors as raw arrays), and autograd a derivative; a kernel
    without one is differentiated through the decomposition. Where no tensor is among the arguments, the
    kernel is that for the dtype and device among them.

    With a `rule`, kernel, derivative and decomposition get canonical arguments: what the rule returns for the
    arguments of a call, those named in `kernel` (comma-separated; by default all of the function's)::

        def _canonical_softmax(input, dim, dtype=None):
            ...
            return cast(input, dtype), normalize_dim(dim, input.ndim, "softmax")


        @composite("input, dim", rule=_canonical_softmax)
        def softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor: ...

    Of the values of tensors a rule must not depend, and canonical arguments it returns as they are. Where
    another op serves a form of the call, it returns ``Delegated(result)``, and `delegates` says so for
    ``explain``.

    An op whose arguments are canonical as they come declares their `shapes` instead,
    ``"input(N, C, *S), kernel[S]+"`` say, see :mod:`.declared_shapes`; calls are held to them before any
    kernel runs. A `rule` with them is called with the arguments, and raises for what shapes don't tell.

    `outputs` names several outputs (``"values, indices"``), or is the class of the named tuple of them; it is
    ``"*"`` for a tuple of as many as the arguments say, and ``""`` for a plain value such as a bool.

    With ``elementwise=True`` each element of the result depends on those at its index only, the dtype is
    the promoted and the shape the broadcast one. In-place variants then have a kernel write into place.

    With ``keeps_format=True`` the result for images that lie channels last does so, too: kernels and body are
    free to make it in any order, and it is copied where they did.

    With ``rows=True`` the result lies row by row, in whatever order the first argument is: that is copied
    before. In-place variants are called with it as it is.

    With ``view=True`` the result may share the input's memory. A kernel then serves only where nobody
    sees that (replayed formulas): a tensor has to know what it is a view of.

    With ``writes="params, buffers"`` the op returns nothing, but changes the tensors in these arguments,
    which may be lists. A kernel then writes into the arrays that it is given, and what it returns is left
    alone.

    With ``updates="running_mean"`` it returns results and writes these arguments besides, where they are not
    None; a kernel does the same with the arrays that it is given.

    A composite that takes a ``generator`` is random; others say so with ``random=True``.

    With ``pure=True`` the body is a function of its arguments: it reads no setting that changes, and does
    nothing besides. Then what it called is replayed for calls alike, see :mod:`.replay`, and is part of the
    graphs of compiled programs, which call other bodies each time. The library's own are.

    A kernel serves where all floating-point tensors are of one dtype. With ``mixed=True`` it takes any, and
    is the one for the dtype of the first tensor.
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        held = ShapeRule(shapes, rule) if shapes else None
        made: Any = _declare(
            function,
            "composite",
            kernel,
            name,
            False,
            view,
            _output_names(outputs),
            inplace,
            method,
            aliases,
            rule=held or rule,
            keeps_format=keeps_format,
            rows=rows,
        )
        op: Op = made.op
        if held is not None:
            held.op = op
        op.elementwise = elementwise
        op.mixed = mixed
        op.layout = layout
        op.reads_layout = reads_layout
        op.delegates = delegates
        op.random = random or "generator" in op.names
        op.pure = _is_own(function) if pure is None else pure
        if not isinstance(outputs, str):
            op.named = outputs
        if writes:
            op.outputs = ()
            op.writes = _positions(op, writes)
        if updates:
            op.updates = _positions(op, updates)
        op.cacheable = outputs != "*" and not (writes or updates)
        return made

    return declare


def composite_like(
    function: Callable[P, Any],
    *,
    rule: Callable[..., Any] | None = None,
    rows: bool = False,
    outputs: str | type[Any] = "result",
    method: bool = True,
) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Declare a composite with the parameters of another one.

    The body gets them all by position, defaults filled in, or what the `rule` returns. `rule`, `rows`,
    `outputs` and `method` are :func:`composite`'s.

    Examples
    --------
    >>> import tensorplug as tp
    >>> @composite_like(tp.softmax, method=False)
    ... def softmax_of_negative(*args):
    ...     input, *rest = args
    ...     return tp.softmax(-input, *rest)
    >>> import inspect
    >>> list(inspect.signature(softmax_of_negative).parameters)
    ['input', 'dim', 'dtype']
    """
    template: Op = function.op  # type: ignore[attr-defined]

    def declare(body: Callable[..., R]) -> Callable[P, R]:
        made: Any = _declare(
            body,
            "composite",
            ", ".join(template.parameters) if rule else None,
            None,
            False,
            False,
            _output_names(outputs),
            False,
            method,
            (),
            rule=rule,
            declaration=template.declaration,
            rows=rows,
        )
        op: Op = made.op
        op.leading = op.arity
        if rule is None:  # kernels then get the call's arguments
            op.function = functools.wraps(body)(
                lambda *args, **kwargs: body(*op.bind(args, kwargs))
            )
        op.random = template.random
        op.pure = _is_own(body)
        returned = {"return": body.__annotations__.get("return", "Any")}
        made.__signature__ = template.signature.replace(return_annotation=returned["return"])
        made.__annotations__ = template.declaration.__annotations__ | returned
        if not isinstance(outputs, str):
            op.named = outputs
        return made

    return declare


def _is_own(function: Callable[..., Any]) -> bool:
    """Return whether a function is the library's own."""
    return function.__module__.startswith("tensorplug.")


def _output_names(outputs: str | type[Any]) -> tuple[str, ...]:
    if isinstance(outputs, str):
        return tuple([part.strip() for part in outputs.split(",")]) if outputs else ()
    names: tuple[str, ...] = outputs._fields
    return names


def _positions(op: Op, names: str) -> tuple[int, ...]:
    return tuple([op.parameters.index(part.strip()) for part in names.split(",")])


def in_place(function: Callable[..., Any]) -> Callable[[F], F]:
    """Give a composite declared with ``inplace=True`` a body of its own for the in-place variant.

    Without one, the result is computed aside and copied in.
    """

    def declare(body: F) -> F:
        function.op.inplace_body = body  # type: ignore[attr-defined]
        return body

    return declare


def _parameters(function: Callable[..., Any]) -> tuple[tuple[str, ...], bool]:
    """Return a function's parameters in order, and whether all may be given by position.

    The code object tells both much faster than ``inspect.signature``, which importing 500 ops would feel.
    """
    code = function.__code__
    names = code.co_varnames
    end = code.co_argcount
    keywords = names[end : end + code.co_kwonlyargcount]
    rest = names[end + len(keywords) :]
    collects = bool(code.co_flags & inspect.CO_VARARGS)
    more = bool(code.co_flags & inspect.CO_VARKEYWORDS)
    ordered = (*names[:end], *rest[:collects], *keywords, *rest[collects : collects + more])
    return ordered, not (collects or more or keywords)


_INTEGERS = ("int", "int | None", int)
# What takes ints as they are, as a threshold of integer tensors does, is declared as Real.
_FLOATS = ("float", "float | None", float)
_NUMBERS = (*_FLOATS, "Real", "Real | None", "Number", "Number | None")
_FLAGS = ("bool", "bool | None", bool)
_STRINGS = ("str", "str | None", str)
_SEQUENCES = ("Sequence[int]", "Sequence[int] | None")
_NEEDED = ("int", "float", "Real", "Number", "bool", "str", int, float, bool, str)


def _declare(
    function: Callable[..., Any],
    kind: OpKind,
    kernel: str | None,
    name: str | None,
    pointwise: bool,
    view: bool,
    outputs: tuple[str, ...],
    inplace: bool,
    method: bool,
    aliases: tuple[str, ...],
    rule: Callable[..., Any] | None = None,
    declaration: Callable[..., Any] | None = None,
    checked: bool = False,
    keeps_format: bool = False,
    rows: bool = False,
) -> Any:
    op = claim(name or function.__name__)
    op.declared = True
    op.kind = kind
    op.pure = kind == "primitive" and _is_own(function)  # composites say it
    op.function = function
    shown: Callable[..., Any] = declaration or inspect.unwrap(function)
    op.declaration = shown
    op.canonical = rule
    names, plain = _parameters(shown)
    op.names = names
    kinds = shown.__annotations__
    count = shown.__code__.co_argcount
    # What is given by name alone has a place that no argument has.
    places = [(i if i < count else sys.maxsize, name) for i, name in enumerate(names)]
    op.integers = tuple([place for place in places if kinds.get(place[1]) in _INTEGERS])
    op.floats = tuple([place for place in places if kinds.get(place[1]) in _FLOATS])
    op.numbers = tuple([place for place in places if kinds.get(place[1]) in _NUMBERS])
    op.flags = tuple([place for place in places if kinds.get(place[1]) in _FLAGS])
    op.sequences = tuple([place for place in places if kinds.get(place[1]) in _SEQUENCES])
    op.strings = tuple([place for place in places if kinds.get(place[1]) in _STRINGS])
    op.layouts = tuple(
        [place for place in places if place[1] == "layout" and kinds["layout"] == "Any"]
    )
    op.needed = frozenset([name for name in names if kinds.get(name) in _NEEDED])
    if plain:
        given = shown.__defaults__ or ()
        op.defaults = (inspect.Parameter.empty,) * (len(names) - len(given)) + given
        op.optional = len(given)
    if kernel is None:
        op.parameters = names
    else:
        op.parameters = tuple(part.strip() for part in kernel.split(",")) if kernel else ()
    op.arity = len(op.parameters)
    if rule is not None:
        positional = names[: inspect.unwrap(function).__code__.co_argcount]
        while (
            op.parameters[op.leading : op.leading + 1]
            == positional[op.leading : op.leading + 1]
            != ()
        ):
            op.leading += 1
    op.pointwise = pointwise
    op.checked = checked
    op.keeps_format = keeps_format
    op.rows = rows
    op.view = view
    op.outputs = outputs
    op.overridden = kind == "composite"  # until it is registered, see the dispatcher
    short = op.name.rpartition(".")[2]
    op.method = short if method else None
    op.inplace = f"{short}_" if inplace else None
    op.aliases = aliases
    op.call = functools.wraps(function)(dispatch_state.build_call(op))
    op.call.op = op  # type: ignore[attr-defined]
    return op.call
