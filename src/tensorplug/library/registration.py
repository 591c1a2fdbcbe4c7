"""Declarations of ops, and registrations for them, by name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from tensorplug._ops import PACKETS, OpOverload, OpOverloadPacket
from tensorplug.core.dispatch import op_registry

from .implementation import AUTOGRAD, EVERY, IMPLICIT, META, Implementation
from .schema import parse

#: What torch calls device types where it registers kernels.
_DEVICES = {"CPU": "cpu", "CUDA": "cuda", "Meta": META, "MPS": "mps", "XPU": "xpu", "HPU": "hpu"}


def _split(name: str) -> tuple[str, str, str]:
    namespace, found, rest = name.partition("::")
    if not found or not namespace or not rest:
        raise ValueError(f"expected the name of an op to be like 'namespace::op', got {name!r}")
    op, _, overload = rest.partition(".")
    return namespace, op, overload or "default"


#: Namespaces whose ops a plugin brings complete, in place of a compiled library: what the library's Python
#: files register for them, as kernels without data, derivatives, policies of autocast, is not needed.
COMPLETE: set[str] = set()


class _Unneeded(Implementation):
    """Takes what is registered for an op that has it already."""

    def __init__(self, name: str) -> None:
        self.schema = parse(f"{name}() -> ()")
        self.kernels = {}


def find(op: Any) -> Implementation:
    """Return what is registered for an op, given by name, as an overload, or as a custom op.

    Raises
    ------
    RuntimeError
        If there is no such op, or it is not one of this module's.
    """
    given = getattr(op, "_opoverload", op)
    if isinstance(given, OpOverloadPacket):
        given = given.default
    if isinstance(given, OpOverload):
        found = given._implementation
        name = given.name()
    else:
        name = str(given)
        namespace, short, overload = _split(name)
        packet = PACKETS.get((namespace, short))
        known = None if packet is None else packet._overloads.get(overload)
        found = None if known is None else known._implementation
    if found is None:
        namespace, short, _ = _split(name)
        if namespace in COMPLETE and op_registry.has_op(f"{namespace}.{short}"):
            return _Unneeded(name)
        raise RuntimeError(f"operator {name} does not exist: define() it first")
    made: Implementation = found
    return made


def declare(namespace: str, schema: str) -> OpOverload:
    """Declare an op by its schema, with its name; return it."""
    parsed = parse(schema)
    if not parsed.name or ("::" in parsed.name and parsed.name.split("::")[0] != namespace):
        raise RuntimeError(f"expected a schema of an op of '{namespace}', got {schema!r}")
    short = parsed.name.rpartition("::")[2]
    parsed = replace(parsed, name=f"{namespace}::{short}")
    packet = PACKETS.get((namespace, short))
    overload = parsed.overload_name or "default"
    if packet is not None and (packet._given is not None or overload in packet._overloads):
        raise RuntimeError(
            f"operator {namespace}::{short} is already registered: its schema cannot be declared twice"
        )
    made = Implementation(parsed)
    if packet is None:
        packet = PACKETS[namespace, short] = OpOverloadPacket(namespace, short)
    return packet.add(overload, made)


def remove(overload: OpOverload) -> None:
    """Take a declared op back."""
    packet = overload.overloadpacket
    if packet._overloads.get(overload._overloadname) is overload:
        overload._implementation.remove()
        del packet._overloads[overload._overloadname]
        if not packet._overloads:
            PACKETS.pop((packet._namespace, packet.__name__), None)


class Library:
    """Declares ops of a namespace, and registers kernels for them.

    Parameters
    ----------
    ns : str
        The namespace.
    kind : {"DEF", "FRAGMENT", "IMPL"}
        Whether it declares ops, or only registers kernels.
    dispatch_key : str
        What kernels are registered for where :meth:`impl` does not say.

    Examples
    --------
    >>> import tensorplug as tp
    >>> library = Library("doc_library", "DEF")
    >>> library.define("twice(Tensor x) -> Tensor")
    'twice'
    >>> library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    >>> tp.ops.doc_library.twice(tp.ones(2))
    tensor([2., 2.])
    >>> library._destroy()
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported library type: {kind}")
        if ns in ("aten", "prims", "prim") and kind == "DEF":
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._declared: list[OpOverload] = []
        self._kernels: list[tuple[Implementation, str]] = []

    def define(
        self, schema: str, alias_analysis: str = "", *, tags: Sequence[Any] | Any = ()
    ) -> str:
        """Declare an op by its schema; return its name."""
        if self.kind == "IMPL":
            raise RuntimeError(
                "a library of kind 'IMPL' declares no ops; make one of kind 'FRAGMENT'"
            )
        made = declare(self.ns, schema)
        self._declared.append(made)
        name: str = schema.partition("(")[0].strip()
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
    ) -> None:
        """Register a kernel for an op: for a device type, or ``"CompositeImplicitAutograd"`` and the like."""
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        if with_keyset:
            raise NotImplementedError(
                "there are no sets of dispatch keys: register without with_keyset"
            )
        key = dispatch_key or self.dispatch_key or IMPLICIT
        name = (
            op_name if not isinstance(op_name, str) or "::" in op_name else f"{self.ns}::{op_name}"
        )
        found = find(name)
        if isinstance(found, _Unneeded):
            return
        kernel = kernel_name(key)
        if kernel in found.kernels:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python overriding "
                f"{found.schema.name}'s behavior for {key} dispatch key and {self.ns} namespace."
            )
        found.kernels[kernel] = fn
        self._kernels.append((found, kernel))

    def fallback(self, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False) -> NoReturn:
        """Raise: ops without a kernel have a policy here, ``tp.set_fallback``."""
        raise NotImplementedError(
            "Library.fallback(): what becomes of an op without a kernel is said by tp.set_fallback()"
        )

    def _destroy(self) -> None:
        """Take back all that the library declared and registered."""
        for found, kernel in self._kernels:
            found.kernels.pop(kernel, None)
        for made in self._declared:
            remove(made)
        self._kernels.clear()
        self._declared.clear()


def kernel_name(key: str) -> str:
    """Return a device type, or a kind of kernel, from what torch calls it.

    Raises
    ------
    NotImplementedError
        If there is no counterpart.
    """
    if key in (EVERY, IMPLICIT, AUTOGRAD, META):
        return key
    if key in ("default", "CatchAll"):
        return IMPLICIT
    if key.startswith("Autograd"):
        return AUTOGRAD
    if key in _DEVICES:
        return _DEVICES[key]
    if key.islower():
        return META if key == "meta" else key
    raise NotImplementedError(f"there is no counterpart of the dispatch key {key!r}")


def _decorator(register: Callable[[Callable[..., Any]], None], func: Any) -> Any:
    """Register a function now, or return the decorator that will."""

    def declared(function: Any) -> Any:
        register(function)
        return function

    return declared if func is None else declared(func)


def define(
    qualname: str, schema: str, *, lib: Library | None = None, tags: Sequence[Any] | Any = ()
) -> None:
    """Declare an op, ``"namespace::op"``, by its schema, ``"(Tensor x) -> Tensor"``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.library.define("doc_define::half", "(Tensor x) -> Tensor")
    >>> _ = tp.library.impl("doc_define::half", "cpu", lambda x: x / 2)
    >>> tp.ops.doc_define.half(tp.ones(2))
    tensor([0.5000, 0.5000])
    >>> tp.library.registration.remove(tp.ops.doc_define.half.default)
    """
    if not isinstance(qualname, str):
        raise ValueError(
            f"define(qualname, schema): expected qualname to be str, got {type(qualname)}"
        )
    namespace, op, overload = _split(qualname)
    suffix = "" if overload == "default" else f".{overload}"
    if not schema.lstrip().startswith("("):
        raise ValueError(
            f"define(qualname, schema): expected schema to look like '(Tensor x) -> Tensor', got {schema!r}"
        )
    if lib is None:
        declare(namespace, f"{op}{suffix}{schema}")
    else:
        lib.define(f"{op}{suffix}{schema}")


def impl(
    qualname: Any,
    types: str | Sequence[str],
    func: Callable[..., Any] | None = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Register a kernel of an op for device types; ``"default"`` for all of them.

    Without `func`, a decorator.
    """
    names = (types,) if isinstance(types, str) else tuple(types)

    def register(function: Callable[..., Any]) -> None:
        found = find(qualname)
        for name in names:
            key = EVERY if name == "default" else kernel_name(name)
            found.kernels[key] = function

    return _decorator(register, func)


def register_kernel(
    op: Any,
    device_types: str | Sequence[str] | None,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Register a kernel of an op for device types; None for all of them. Without `func`, a decorator."""
    names = (device_types,) if isinstance(device_types, str) else device_types

    def register(function: Callable[..., Any]) -> None:
        found = find(op)
        for name in (EVERY,) if names is None else names:
            found.kernels[META if name == "meta" else name] = function

    return _decorator(register, func)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
    allow_override: bool = False,
    **_: Any,
) -> Any:
    """Register what an op gives for tensors without data, on "meta". Without `func`, a decorator."""

    def register(function: Callable[..., Any]) -> None:
        find(op).kernels[META] = function

    return _decorator(register, func)


#: The former name of :func:`register_fake`.
impl_abstract = register_fake


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Register the derivative of an op.

    Parameters
    ----------
    op : str or OpOverload
        Which.
    backward : callable
        ``backward(ctx, *gradients)`` returns a gradient, or None, for each argument.
    setup_context : callable, optional
        ``setup_context(ctx, inputs, output)`` keeps what `backward` needs; with `keyword_only_inputs`
        between, where the op has such.
    """
    found = find(op)
    if found.schema.is_mutable:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {found.schema.name} with schema "
            f"{found.schema}. Please create a functional operator and register an autograd formula for that."
        )
    if found.schema.has_keyword_tensors():
        raise NotImplementedError(
            "register_autograd with kwarg-only Tensor args. In the original definition of the op, please "
            f"make your tensors not kwarg-only. Got: {found.schema}"
        )
    found.backward, found.setup_context = backward, setup_context


def register_vmap(
    op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """Register ``func(info, in_dims, *args)``, which returns ``(output, out_dims)`` inside of ``vmap``.

    Without one the op is called for each sample.
    """

    def register(function: Callable[..., Any]) -> None:
        find(op).vmap = function

    return _decorator(register, func)


def register_autocast(
    op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None
) -> None:
    """Have an op get its floating-point tensors as `cast_inputs` where autocast is on for a device type."""
    from tensorplug.amp.autocast_mode import autocast, is_autocast_enabled

    found = find(op)
    plain = found.compute

    def compute(values: tuple[Any, ...]) -> Any:
        if not is_autocast_enabled(device_type):
            return plain(values)

        def cast(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)([cast(item) for item in value])
            floating = getattr(value, "is_floating_point", None)
            if floating is None or not callable(floating) or value.device.type != device_type:
                return value
            return value.to(cast_inputs) if floating() else value

        with autocast(device_type, enabled=False):
            return plain(tuple([cast(value) for value in values]))

    found.compute = compute  # type: ignore[method-assign]


def get_ctx() -> NoReturn:
    """Raise: shapes that only the data decide have no symbols here."""
    raise NotImplementedError(
        "get_ctx(): tensors on 'meta' have the shapes that a call would give; sizes that depend on the data "
        "have no symbols"
    )


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Library | None = None
) -> NoReturn:
    """Raise: there is no ``__torch_dispatch__``."""
    raise NotImplementedError(
        "register_torch_dispatch(): there is no __torch_dispatch__; what is to see the calls of ops is a "
        "layer, see tensorplug.plugin"
    )


def triton_op(
    name: str, fn: Any = None, /, *, mutates_args: str | Iterable[str], schema: str | None = None
) -> NoReturn:
    """Raise: there is no compiler that would look into a Triton kernel; `custom_op` serves it."""
    raise NotImplementedError(
        f"triton_op({name!r}): there is no compiler that would look into it; register it with custom_op"
    )


def wrap_triton(triton_kernel: Any, /) -> NoReturn:
    """Raise: see :func:`triton_op`."""
    raise NotImplementedError(
        "wrap_triton(): call the Triton kernel as it is, within a function registered with custom_op"
    )


def fallthrough_kernel(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise: it stands for having no kernel."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Any:
    made = Library(*args, **kwargs)
    try:
        yield made
    finally:
        made._destroy()
