"""``opcheck``: whether what is registered for an op fits together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorplug.core import Tensor

from .implementation import META, tensors_in
from .registration import find


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)([_copied(item) for item in value])
    return value


def _outputs(result: Any) -> list[Any]:
    return list(tensors_in((result,)))


class OpCheckError(Exception):
    """Raised by :func:`opcheck`."""


def _schema(found: Any, values: tuple[Any, ...]) -> None:
    given = _copied(values)
    result = found.op.call(*given)
    for position, (argument, value) in enumerate(zip(found.schema.arguments, given, strict=True)):
        if argument.is_write:
            continue
        for before, now in zip(tensors_in((values[position],)), tensors_in((value,)), strict=True):
            if not bool(((before == now) | ((before != before) & (now != now))).all()):
                raise OpCheckError(
                    f"Argument {argument.name} is not defined as mutable but was mutated"
                )
    wanted = len(found.schema.returns)
    got = len(result) if isinstance(result, tuple) else 0 if result is None else 1
    if got != wanted:
        raise OpCheckError(f"{found.schema} returned {got} values, expected {wanted}")


def _registration(found: Any, values: tuple[Any, ...]) -> None:
    if found.setup_context is not None and found.backward is None:
        raise OpCheckError(f"{found.schema.name} has a setup_context without a backward")


def _fake(found: Any, values: tuple[Any, ...]) -> None:
    if META not in found.kernels and found.schema.returns:
        raise OpCheckError(f"{found.schema.name}: there was no fake impl registered")

    def on_meta(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.detach().to("meta")
        if isinstance(value, (list, tuple)):
            return type(value)([on_meta(item) for item in value])
        return value

    real = _outputs(found.op.call(*_copied(values)))
    if META not in found.kernels:
        return
    fake = _outputs(found.op.call(*[on_meta(value) for value in values]))
    for one, other in zip(real, fake, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            raise OpCheckError(
                f"{found.schema.name}: fake impl returned {other.dtype} of shape {list(other.shape)}, the "
                f"kernel {one.dtype} of shape {list(one.shape)}"
            )


def _gradients(found: Any, values: tuple[Any, ...]) -> None:
    given = _copied(values)
    inputs = [tensor for tensor in tensors_in(given) if tensor.requires_grad]
    if not inputs:
        return
    outputs = [out for out in _outputs(found.op.call(*given)) if out.requires_grad]
    if outputs:
        total: Any = sum([out.sum() for out in outputs])
        total.backward()


_TESTS: dict[str, Callable[[Any, tuple[Any, ...]], None]] = {
    "test_schema": _schema,
    "test_autograd_registration": _registration,
    "test_faketensor": _fake,
    "test_aot_dispatch_dynamic": _gradients,
}


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = tuple(_TESTS),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Check what is registered for an op with a call's arguments; values of gradients are gradcheck's affair.

    Parameters
    ----------
    op : OpOverload
        ``tp.ops.package.op``, or what :func:`custom_op` returned.
    args, kwargs
        The arguments.
    test_utils : str or sequence of str
        Which checks: that arguments are written to as declared, that there is a derivative where there is a
        context, that shapes on "meta" are those of the kernel, that gradients can be computed.
    raise_exception : bool
        Whether to raise what a check finds; otherwise it is in the result.

    Returns
    -------
    dict
        ``"SUCCESS"``, or the error, by the name of the check.
    """
    found = find(op)
    values = found.schema.bind(tuple(args), kwargs or {})
    results: dict[str, Any] = {}
    for name in (test_utils,) if isinstance(test_utils, str) else test_utils:
        try:
            _TESTS[name](found, values)
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            results[name] = error
    return results
