"""``custom_op``: an op from a function with annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tensorplug._ops import PACKETS

from . import registration
from .implementation import EVERY
from .registration import _split
from .schema import infer_schema, parse

_MADE: dict[str, CustomOpDef] = {}


class CustomOpDef:
    """An op that :func:`custom_op` made, and the decorators that register more for it."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any]) -> None:
        self._namespace = namespace
        self._name = name
        self._schema = schema
        self._init_fn = fn
        self._lib = registration.Library(namespace, "FRAGMENT")
        before = _MADE.pop(self._qualname, None)
        if before is not None:  # a cell of a notebook run again
            before._lib._destroy()
        self._lib.define(name + schema)
        self._opoverload = PACKETS[namespace, name].default
        self.__name__ = name
        self.__doc__ = fn.__doc__
        _MADE[self._qualname] = self

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the op."""
        return self._opoverload(*args, **kwargs)

    def register_kernel(
        self,
        device_types: str | Sequence[str] | None,
        fn: Callable[..., Any] | None = None,
        /,
    ) -> Any:
        """Register a kernel for device types; None for all that have none of their own."""
        return registration.register_kernel(self._opoverload, device_types, fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Register what the op gives for tensors without data, on "meta"."""
        made: Callable[..., Any] = registration.register_fake(self._opoverload, fn)
        return made

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Register the derivative; see :func:`tensorplug.library.register_autograd`."""
        registration.register_autograd(self._opoverload, backward, setup_context=setup_context)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Register the rule for ``vmap``; see :func:`tensorplug.library.register_vmap`."""
        return registration.register_vmap(self._opoverload, func)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Register the dtype that arguments have under autocast."""
        registration.register_autocast(self._opoverload, device_type, cast_inputs)

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None, /) -> Any:
        """Raise: there is no ``__torch_dispatch__``."""
        return registration.register_torch_dispatch(self._opoverload, torch_dispatch_class, fn)


def _check(name: str, spelled: str, mutates_args: str | Iterable[str]) -> None:
    """Refuse what an op cannot have: tensors by keyword alone, other writes than were named."""
    known = parse(name + spelled)
    if known.has_keyword_tensors():
        raise NotImplementedError(
            f"custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {known}"
        )
    written = {argument.name for argument in known.arguments if argument.is_write}
    if mutates_args != "unknown" and set(mutates_args) != written:
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={spelled}`. The "
            f"schema suggests that the op mutates {written or '{}'}, which is different from what was given "
            "in `mutates_args`. Please make these consistent."
        )


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Sequence[Any] | None = None,
) -> Any:
    """Make an op of a function; used as a decorator, as a rule.

    Parameters
    ----------
    name : str
        ``"namespace::op"``; the op is ``tp.ops.namespace.op`` then.
    fn : callable, optional
        The kernel, over tensors. Its annotations give the schema.
    mutates_args : iterable of str
        The names of the arguments that it writes to.
    device_types : str or sequence of str, optional
        The device types that it serves; by default all.
    schema : str, optional
        ``"(Tensor x, int y) -> Tensor"``, where there are no annotations.

    Returns
    -------
    CustomOpDef
        Called like the function; its ``register_kernel``, ``register_fake``, ``register_autograd`` and
        ``register_vmap`` add to it.

    Examples
    --------
    >>> import tensorplug as tp
    >>> @custom_op("doc_custom::cube", mutates_args=())
    ... def cube(x: tp.Tensor) -> tp.Tensor:
    ...     return tp.from_numpy(x.numpy(force=True) ** 3)
    >>> def keep(ctx, inputs, output):
    ...     ctx.save_for_backward(inputs[0])
    >>> cube.register_autograd(lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2, setup_context=keep)
    >>> x = tp.tensor([2.0], requires_grad=True)
    >>> tp.ops.doc_custom.cube(x).sum().backward()
    >>> x.grad
    tensor([12.])
    >>> cube._lib._destroy()
    """

    def declare(function: Callable[..., Any]) -> CustomOpDef:
        namespace, short, overload = _split(name)
        if overload != "default":
            raise ValueError(f"custom_op(): there are no overloads, got {name!r}")
        spelled = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        _check(name, spelled, mutates_args if schema is not None else "unknown")
        made = CustomOpDef(namespace, short, spelled, function)
        kernels = registration.find(made._opoverload).kernels
        for device in (
            (EVERY,)
            if device_types is None
            else (device_types,)
            if isinstance(device_types, str)
            else device_types
        ):
            kernels[device] = function
        return made

    return declare if fn is None else declare(fn)
