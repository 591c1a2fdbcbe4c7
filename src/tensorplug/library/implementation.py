"""An op registered at run time: its kernels by device type, its derivative, its rule for vmap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.autograd.function import Function
from tensorplug.core import Tensor
from tensorplug.core.device.device import Device
from tensorplug.core.dispatch import op_registry
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.ops import stack
from tensorplug.core.tensor.base import bump_version

from .schema import FunctionSchema

#: What torch calls kernels for: device types, and functions that serve several of them.
EVERY, IMPLICIT, AUTOGRAD, META = (
    "CompositeExplicitAutograd",
    "CompositeImplicitAutograd",
    "Autograd",
    "Meta",
)


def _share_memory(given: list[Any], returned: list[Any]) -> bool:
    """Return whether a returned tensor is one of those given or returned, or shows memory of theirs."""
    known = {id(tensor) for tensor in given}
    known.update([id(tensor._storage) for tensor in given if tensor._storage is not None])
    for tensor in returned:
        for what in (tensor, tensor._storage):
            if what is not None and id(what) in known:
                return True
        known.update(
            (id(tensor), id(tensor._storage)) if tensor._storage is not None else (id(tensor),)
        )
    return False


class Implementation:
    """What is registered for one op.

    Attributes
    ----------
    schema : FunctionSchema
        Its arguments.
    op : Op
        What calls of it are to layers, plugins and ``explain``.
    kernels : dict
        By device type, or ``"CompositeExplicitAutograd"`` and the like: functions over tensors.
    backward, setup_context, vmap : callable or None
        As :func:`register_autograd` and :func:`register_vmap` have them.
    """

    def __init__(self, schema: FunctionSchema) -> None:
        self.schema = schema
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.vmap: Callable[..., Any] | None = None
        self.written = [i for i, argument in enumerate(schema.arguments) if argument.is_write]
        self.returns_arguments = any([returned.alias for returned in schema.returns])
        self.positional = sum([not argument.kwarg_only for argument in schema.arguments])
        name = schema.name.replace("::", ".")
        if schema.overload_name:
            name += f".{schema.overload_name}"

        def call(*args: Any, **kwargs: Any) -> Any:
            return self.run(schema.bind(args, kwargs))

        call.__name__ = call.__qualname__ = schema.name.rpartition("::")[2]
        call.__doc__ = f"The op ``{schema}``."
        made: Any = op_registry.composite(name=name, method=False, outputs="*", pure=False)(call)
        self.op = made.op
        op_registry.register_op(self.op, f"library {schema.name.partition('::')[0]}")

    def remove(self) -> None:
        """Take the op out of the registry."""
        op_registry.unregister_op(self.op)

    def run(self, values: tuple[Any, ...]) -> Any:
        """Make a call with values in the order of the schema."""
        tensors = list(tensors_in(values))
        if IMPLICIT in self.kernels:
            return self._called(self.kernels[IMPLICIT], values)
        if AUTOGRAD in self.kernels:
            return self._called(self.kernels[AUTOGRAD], values)
        gradient = dispatch_state.gradient
        recorded = any([tensor.requires_grad for tensor in tensors]) and gradient.enabled()
        if not recorded and not any([t._batched or t._tangents for t in tensors]):
            return self.compute(values)
        return self._recorded(values)

    def _called(self, kernel: Callable[..., Any], values: tuple[Any, ...]) -> Any:
        names = [argument.name for argument in self.schema.arguments[self.positional :]]
        return kernel(
            *values[: self.positional], **dict(zip(names, values[self.positional :], strict=True))
        )

    def compute(self, values: tuple[Any, ...]) -> Any:
        """Call the kernel for the device of the arguments, unrecorded."""
        kernel = self._kernel(values)
        with no_grad():
            result = self._called(kernel, values)
        self.schema.check_returned(result)
        given = list(tensors_in(values))
        returned = list(tensors_in(result if isinstance(result, (tuple, list)) else (result,)))
        if not self.returns_arguments and _share_memory(given, returned):
            raise RuntimeError(
                f"{self.schema.name} (with implementation in {kernel.__module__}): The output of this "
                "custom operator (1) must not also be an input to this custom operator and (2) may not alias "
                "any inputs to this custom operator or other returns: return a clone, as y = x.clone()"
            )
        for position in self.written:
            for tensor in tensors_in((values[position],)):
                bump_version(tensor)
        return result

    def _kernel(self, values: tuple[Any, ...]) -> Callable[..., Any]:
        device = device_of(values)
        for name in (device, EVERY):
            kernel = self.kernels.get(META if name == "meta" else name)
            if kernel is not None and not (device == "meta" and name == EVERY):
                return kernel
        known = ", ".join(sorted(self.kernels)) or "none"
        what = (
            f"there was no fake impl registered; add one with @tensorplug.library.register_fake("
            f'"{self.schema.name}")'
            if device == "meta"
            else f"register one with tensorplug.library.register_kernel({self.schema.name!r}, {device!r})"
        )
        raise NotImplementedError(
            f"Could not run '{self.schema.name}' with arguments from the '{device}' backend: {what}. "
            f"'{self.schema.name}' is only available for: {known}."
        )

    # --- recorded, and inside of vmap ---

    def _recorded(self, values: tuple[Any, ...]) -> Any:
        flat: list[Any] = []
        counts: list[int | None] = []  # of each value, how many it is in a list, or None
        for value in values:
            if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
                counts.append(len(value))
                flat.extend(value)
            else:
                counts.append(None)
                flat.append(value)
        for position in self.written:
            for tensor in tensors_in((values[position],)):
                if tensor.requires_grad:
                    raise RuntimeError(
                        f"{self.schema.name} writes to its argument "
                        f"'{self.schema.arguments[position].name}', which requires grad: there is no "
                        "derivative of that; detach() it first"
                    )
        return self._function(counts).apply(*flat)

    def _function(self, counts: list[int | None]) -> Any:
        """Return the Function of calls with so many tensors in their lists."""
        this = self
        lists = any(count is not None for count in counts)

        def nested(flat: tuple[Any, ...]) -> tuple[Any, ...]:
            items = iter(flat)
            return tuple(
                [
                    next(items) if count is None else [next(items) for _ in range(count)]
                    for count in counts
                ]
            )

        class Called(Function):
            @staticmethod
            def forward(*flat: Any) -> Any:
                return this.compute(nested(flat))

            @staticmethod
            def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
                if this.setup_context is None:
                    return
                values = nested(inputs)
                if this.positional == len(values):
                    this.setup_context(ctx=ctx, inputs=values, output=output)
                else:
                    names = [argument.name for argument in this.schema.arguments[this.positional :]]
                    this.setup_context(
                        ctx=ctx,
                        inputs=values[: this.positional],
                        keyword_only_inputs=dict(
                            zip(names, values[this.positional :], strict=True)
                        ),
                        output=output,
                    )

            @staticmethod
            def backward(ctx: Any, *gradients: Any) -> Any:
                if this.backward is None:
                    raise RuntimeError(
                        f"Trying to backward through {this.schema.name}.default but no autograd formula was "
                        "registered. Please use register_autograd to add one."
                    )
                returned = this.schema.returns
                if len(returned) == 1 and returned[0].type.endswith("[]"):
                    gradients = (list(gradients),)
                if lists and list not in map(type, ctx.needs_input_grad):
                    ctx.needs_input_grad = nested(ctx.needs_input_grad)
                results = this.backward(ctx, *gradients)
                results = results if isinstance(results, tuple) else (results,)
                more = len(results) - this.positional
                if more < 0 or any(result is not None for result in results[this.positional :]):
                    raise RuntimeError(
                        f"function GeneratedBackwardFor_{this.schema.name.replace('::', '_')} returned an "
                        f"incorrect number of gradients (expected {this.positional}, got {len(results)})"
                    )
                results = results[: this.positional] + (None,) * (len(counts) - this.positional)
                flat: list[Any] = []
                for count, result in zip(counts, results, strict=True):
                    if count is None:
                        flat.append(result)
                    else:
                        flat.extend([None] * count if result is None else result)
                return tuple(flat)

            @staticmethod
            def vmap(info: Any, in_dims: tuple[Any, ...], *flat: Any) -> Any:
                values, dims = nested(flat), nested(in_dims)
                if this.vmap is None:
                    return this._called_one_by_one(info, dims, values)
                return this._called_batched(info, dims, values)

        Called.__name__ = self.schema.name.replace("::", "_")
        return Called

    def _called_batched(self, info: Any, dims: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
        names = [argument.name for argument in self.schema.arguments[self.positional :]]
        assert self.vmap is not None
        return self.vmap(
            info,
            dims[: self.positional],
            *values[: self.positional],
            **dict(zip(names, values[self.positional :], strict=True)),
        )

    def _called_one_by_one(self, info: Any, dims: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
        """Make a call for each sample, for want of a rule."""
        if self.written or not info.batch_size:
            why = "the op writes to its arguments" if self.written else "there is no sample"
            raise RuntimeError(
                f"vmap: there is no batching rule for {self.schema.name}, and {why}; add one with "
                "tensorplug.library.register_vmap"
            )
        return _stacked(
            [self.run(_sample(values, dims, number)) for number in range(info.batch_size)]
        )


def _sample(values: Any, dims: Any, number: int) -> Any:
    """Return values with one sample in place of each batch."""
    if isinstance(dims, (list, tuple)):
        return type(values)(
            [_sample(value, dim, number) for value, dim in zip(values, dims, strict=True)]
        )
    return values if dims is None else values.select(dims, number)


def _stacked(results: list[Any]) -> tuple[Any, Any]:
    """Return what the calls for all samples returned as a batch, and its dimension."""
    first = results[0]
    if isinstance(first, Tensor):
        return stack(results), 0
    if not isinstance(first, (list, tuple)):
        return first, None
    pairs = [_stacked(list(column)) for column in zip(*results, strict=True)]
    return type(first)([batch for batch, _ in pairs]), tuple([dim for _, dim in pairs])


def tensors_in(values: tuple[Any, ...] | list[Any]) -> Iterator[Any]:
    """Yield the tensors among values and lists of values."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def device_of(values: tuple[Any, ...]) -> str:
    """Return the device type that a call is for: a tensor's, or that of an argument that is a device."""
    for tensor in tensors_in(values):
        return str(tensor.device.type)
    for value in values:
        if isinstance(value, Device):
            return value.type
    return "cpu"
