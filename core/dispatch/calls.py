"""What users call: the functions made of declared ops, and their call caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor.base import TensorBase, new_tensor
from ..tensor.layout import contiguous_format, suggested_format
from .arguments import factor_of, find_foreign, plain_arguments, reads_tensor
from .call_cache import CallCache, cache_call, cache_delegation
from .call_keys import all_given, any_named, call_key
from .composite_calls import call_overridden, call_ruled
from .composite_runs import run_overridden
from .dispatcher import general, rescued
from .execution import contract, execute, run_cached, verify
from .failed_calls import explained
from .fast_path import binary, unary
from .list_calls import call_of_list
from .op import Delegated, Op, Spec, first_tensor
from .released_views import executed, released
from .replay import replayed, replayed_unrecorded
from .state import dispatch_state
from .view_calls import call_view, given_arguments, show_again
from .view_plans import ABSENT
from .writes import inplace


def call_primitive(op: Op, cache: CallCache, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a primitive that is no view, by its rule or by the call cache."""
    if args and (type(args[0]) is list or type(args[0]) is tuple):
        tensors: Any = args[0]
        if tensors and isinstance(tensors[0], TensorBase):
            return call_of_list(op, cache, args, kwargs)
    cached = cache.recalled(args, kwargs, False)
    if cached is None:
        for arg in args:
            # Tensors in a list, and slices, are no keys.
            if (
                (type(arg) is list or type(arg) is tuple)
                and arg
                and type(arg[0]) is not int
                and (type(arg[0]) is slice or first_tensor(arg) is not None)
            ):
                try:
                    return executed(op, args, kwargs)
                except TypeError:
                    find_foreign(args, kwargs)
                    raise
        key = call_key(args, kwargs)
        try:
            cached = cache.calls.get(key)
        except TypeError:  # an argument that cannot be a key, such as a list
            args, kwargs = plain_arguments(op, args, kwargs)
            return executed(op, args, kwargs)
        if cached is None:
            if cache.delegates:
                replay = replayed(op, cache, args, kwargs)
                if replay is not NotImplemented:
                    return replay
            elif cache.converts:
                replay = replayed_unrecorded(op, cache, args, kwargs)
                if replay is not NotImplemented:
                    return replay
            given, named = args, kwargs
            args, kwargs = plain_arguments(op, args, kwargs)
            spec = op.function(*args, **kwargs)
            alike = not reads_tensor(given, named, args, kwargs)
            if type(spec) is Delegated:
                cache.delegates = cache.delegates or spec.function is None
                if alike:
                    cache_delegation(op, cache, key, args, kwargs, spec)
                return released(spec.result, args, kwargs)
            if alike:
                cache_call(op, cache, key, args, kwargs, spec)
            return execute(op, spec)
        cache.note_recent(cached, args, kwargs, True)
    if kwargs:
        args = all_given(args, kwargs)
    result = cached.result
    if result is None:
        if cached.function is not None:
            made = cached.function(*cached.fill(args))
            if isinstance(made, TensorBase):  # as `released` does, without a call
                output = made
                if output._view is None:
                    return output
            return released(made, args, kwargs)
        spec = Spec.__new__(Spec)
        spec.values = tuple(cached.fill(args))
        spec.key = cached.key
        spec.outputs = cached.outputs
        return execute(op, spec)
    array = run_cached(op, cached, args)
    if dispatch_state.verify:
        verify(op, cached.key, array, cached.outputs)
    if type(array) is not result.array_type:
        array = result.as_array(array)
    if array.shape != cached.shape:
        raise contract(op, cached.key, f"shape {list(array.shape)}", f"{list(cached.shape or ())}")
    output = new_tensor(array, result, cached.shape or ())
    state = 0
    for position in cached.arg_indices:
        tensor = args[position]
        state |= tensor._state
    if state and (not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()):
        dispatch_state.gradient.record_cached(op, cached, args, output)
    if dispatch_state.inference:
        dispatch_state.gradient.mark_if_inference(output)
    return output


def _takes_numbers(op: Op) -> bool:
    """Return whether any parameter is not just a tensor."""
    kinds = op.function.__annotations__
    return any([kinds.get(name) not in ("Tensor", "Tensor | None") for name in op.names])


# Parameters, and by what other names torch takes them: NumPy's, and those of its overloads.
_FIRST = ("A", "B", "L", "b", "input", "x")
_SPELLINGS = {
    "dim": ("axis",),
    "dim0": ("axis0",),
    "dim1": ("axis1",),
    "elements": ("element",),
    "indices_or_sections": ("indices", "sections", "tensor_indices_or_sections"),
    "input": ("x", "a", "x1"),
    "keepdim": ("keepdims",),
    "other": ("x2",),
    "split_size_or_sections": ("split_size",),
    "test_elements": ("test_element",),
}


def _renamed(op: Op) -> dict[str, str]:
    """Return which other names of arguments a call may use, and whose they are."""
    first = [name for name in op.parameters[:1] if name in _FIRST]
    found = {theirs: ours for ours in op.parameters for theirs in _SPELLINGS.get(ours, ())}
    found |= {theirs: ours for ours in first for theirs in ("input", "x", "a", "x1")}
    return {theirs: ours for theirs, ours in found.items() if theirs not in op.parameters}


def _respelled(op: Op, renamed: dict[str, str], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return arguments given by other names under their own."""
    named = {renamed.get(name, name): value for name, value in kwargs.items()}
    if len(named) < len(kwargs):
        raise TypeError(f"{op.name}() got an argument by two of its names: {', '.join(kwargs)}")
    return named


def _by_name(op: Op, given: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return a pointwise op's arguments, of which some were not given in their places."""
    named = _respelled(op, _renamed(op), options)
    for name in op.parameters[: op.arity]:
        if given.get(name, ABSENT) is not ABSENT:
            named[name] = given[name]
        elif name not in named:
            raise TypeError(f"{op.name}() missing 1 required positional argument: '{name}'")
    return named


def _with_options(op: Op, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a pointwise op with arguments that are given by name, by the call cache if it can be."""
    cache = op.promotions
    if cache is None or "out" in options or dispatch_state.layers_active:
        return general(op, args, options)
    try:
        return call_primitive(op, cache, args, options)
    except Exception as error:
        made = rescued(op, args, options, error)
        if made is None:
            raise
        return made[0]


def _build_call(op: Op) -> Callable[..., Any]:
    """Return the callable of an op, of the arity that suits it."""
    if op.pointwise and op.arity == 1:

        def call_unary(input: Any = ABSENT, *rest: Any, **options: Any) -> Any:
            if rest or options or input is ABSENT:
                if input is ABSENT:
                    named = _by_name(op, {}, options)
                    return general(op, (named.pop(op.parameters[0]),), named)
                return general(op, (input, *rest), options)
            return unary(input, op)

        return call_unary

    if op.checked:
        op.promotions = CallCache()

        def call_checked(*args: Any, **options: Any) -> Any:
            if options:
                return general(op, args, _respelled(op, _renamed(op), options))
            if len(args) != 2 or (type(args[1]) is int and args[1] < 0):
                return general(op, args, options)
            return binary(args[0], args[1], op)

        return call_checked

    if op.pointwise and op.arity == 2:
        op.promotions = CallCache()

        def call_binary(
            input: Any = ABSENT, other: Any = ABSENT, *rest: Any, **options: Any
        ) -> Any:
            if rest:  # too many, or a deprecated call
                return general(op, (input, other, *rest), options)
            if options or other is ABSENT:
                if input is ABSENT or other is ABSENT:
                    first, second = op.parameters[:2]
                    named = _by_name(op, {first: input, second: other}, options)
                    return general(op, (named.pop(first), named.pop(second)), named)
                if op.scaled is not None:
                    factor = factor_of(op, input, other, options)
                    if factor is not None:
                        return op.scaled.call(input, other, factor)
                return _with_options(op, (input, other), options)
            return binary(input, other, op)

        return call_binary

    renamed = _renamed(op)
    # Whoever gives more arguments than this in their places has none left to name otherwise.
    namable = max([op.parameters.index(name) + 1 for name in renamed.values()], default=0)
    cache = CallCache()
    seeded = "seed" in op.names  # a seed differs from call to call: nothing to cache

    if op.kind == "composite":
        numbers = _takes_numbers(op)

        def call_composite(*args: Any, **kwargs: Any) -> Any:
            if op.rows:
                args, kwargs = _in_rows(op, args, kwargs)
            if kwargs:
                if len(args) < namable and any_named(kwargs, renamed):
                    kwargs = _respelled(op, renamed, kwargs)
                if "out" in kwargs:
                    return general(op, args, kwargs)
            if dispatch_state.layers_active and dispatch_state.takes_over(args, kwargs):
                return general(op, args, kwargs)
            try:
                if op.view:
                    return call_view(op, cache, args, kwargs)
                if op.overridden:
                    if seeded:
                        return run_overridden(op, args, kwargs)
                    return call_overridden(op, cache, args, kwargs)
                replay = replayed(op, cache, args, kwargs)
                if replay is not NotImplemented:
                    return replay
                if op.canonical is None:
                    if numbers:
                        args, kwargs = plain_arguments(op, args, kwargs)
                    else:
                        find_foreign(args, kwargs)
                    return released(op.function(*args, **kwargs), args, kwargs)
                return call_ruled(op, cache, args, kwargs)
            except Exception as error:
                made = rescued(op, args, kwargs, error)
                if made is None:
                    raise
                return made[0]

        if op.keeps_format:
            return _in_format(op, call_composite)
        return _by_plan(op, call_composite) if op.view else call_composite

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            if len(args) < namable and any_named(kwargs, renamed):
                kwargs = _respelled(op, renamed, kwargs)
            if "out" in kwargs:
                return general(op, args, kwargs)
        if dispatch_state.layers_active and dispatch_state.takes_over(args, kwargs):
            return general(op, args, kwargs)
        try:
            if op.view:  # whether memory can be shown in a shape depends on more than shapes
                return call_view(op, cache, args, kwargs)
            if seeded:
                args, kwargs = plain_arguments(op, args, kwargs)
                return executed(op, args, kwargs)
            return call_primitive(op, cache, args, kwargs)
        except Exception as error:
            made = rescued(op, args, kwargs, error)
            if made is None:
                raise
            return made[0]

    return _by_plan(op, call) if op.view else call


def _in_format(op: Op, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the callable of an op whose result is in the memory format of the images that it gets."""
    first = op.names[0]

    def call_of_image(*args: Any, **kwargs: Any) -> Any:
        made = call(*args, **kwargs)
        image = args[0] if args else kwargs.get(first)
        if isinstance(image, TensorBase) and len(image._shape) > 3 and "out" not in kwargs:
            key = image._key
            array = image._array
            if type(array) is key.array_type and not key.runtime.is_contiguous(array):
                return _formatted(made, image)
        return made

    return call_of_image


def _formatted(made: Any, image: Any) -> Any:
    chosen = suggested_format(image._shape, image._key.runtime.strides(image._array))
    if made is image or chosen is contiguous_format:
        return made
    return made.contiguous(memory_format=chosen)


def _in_rows(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a call's arguments with a copy of the first one where that does not lie row by row."""
    input = args[0] if args else kwargs.get(op.names[0])
    if isinstance(input, TensorBase) and len(input._shape) > 1:
        tensor: Any = input
        key = tensor._key
        array = tensor._array
        if type(array) is key.array_type and not key.runtime.is_contiguous(array):
            if args:
                return (tensor.contiguous(), *args[1:]), kwargs
            return args, kwargs | {op.names[0]: tensor.contiguous()}
    return args, kwargs


def _by_plan(op: Op, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the callable of a view op: a call like the latest one goes straight to the view."""
    op.plans = CallCache()
    op.plans.by_shape = op.parameters[1:] == ("other",)

    def call_planned(
        input: Any = ABSENT, first: Any = ABSENT, second: Any = ABSENT, third: Any = ABSENT,
        fourth: Any = ABSENT, /, *rest: Any, **options: Any,
    ) -> Any:  # fmt: skip
        if not (rest or options or dispatch_state.layers_active):
            shown = show_again(op, input, first, second, third, fourth)
            if shown is not None:
                return shown
        return call(*given_arguments(input, first, second, third, fourth, *rest), **options)

    return call_planned


def _build_inplace(op: Op, name: str) -> Callable[..., Any]:
    def call_inplace(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return inplace(op, name, self, args, kwargs)
        except Exception as error:
            told = explained(op, name, (self, *args), kwargs, error)
            if told is None:
                raise
            raise told from told.__cause__

    call_inplace.__name__ = call_inplace.__qualname__ = name
    call_inplace.__doc__ = f"In-place version of :func:`tensorplug.{op.name}`; returns the tensor."
    return call_inplace


dispatch_state.build_call = _build_call
dispatch_state.build_inplace = _build_inplace
