"""Cache of calls: the specs of ops for arguments of the same keys, shapes and plain values."""

from __future__ import annotations

from typing import Any

from ..tensor.base import TensorBase, new_tensor
from .call_keys import all_given, ambiguous
from .keys import DispatchKey
from .op import Delegated, Op, Spec, first_tensor
from .view_plans import PlannedCall


def kept(value: Any) -> Any:
    """Return a plain value as a cache keeps it: a list may change later."""
    return list(value) if type(value) is list else value


class CachedCall:
    """The spec of an op for one combination of dispatch keys, shapes and plain values.

    A rule sees nothing else of its arguments, so for the same ones the spec is the same but for the tensors
    in it.

    Attributes
    ----------
    template, raw : list
        The arguments of the op and those of its kernel, None in place of tensors.
    slots, arg_indices : tuple of int
        Where the tensors go in the template, and where they stand among the call's arguments.
    listed : bool
        Whether the tensors are instead the items of the first argument, a list.
    key, outputs : DispatchKey, tuple
        As in the spec.
    result, shape : DispatchKey or None, tuple of int or None
        Of a single output whose shape is known.
    native : bool
        Of a composite: whether a kernel runs instead of its decomposition.
    function : callable or None
        Of a call that is delegated: what is called instead, with the template's arguments.
    recordings : dict
        The gradient layer's own: how such a call is recorded, by which tensors require grad.
    keys, given : tuple
        Of a call that was made again: the dispatch keys of its arguments, None in place of plain values;
        shapes and plain values. Of a listed one: those of the items, and None for shapes that do not matter.
    names : tuple of str
        Of such a call: the names of the arguments that were given by name, the last ones.
    rest : tuple
        Of a listed one: the arguments after the list.
    following : CachedCall or None
        What served the op's next call when it was another one: programs repeat their calls in turn.
    """

    __slots__ = (
        "arg_indices",
        "following",
        "function",
        "given",
        "key",
        "keys",
        "listed",
        "names",
        "native",
        "outputs",
        "raw",
        "recordings",
        "rest",
        "result",
        "shape",
        "slots",
        "template",
    )  # fmt: skip

    def __init__(
        self, op: Op, spec: Spec, slots: tuple[int, ...], arg_indices: tuple[int, ...]
    ) -> None:
        self.template: list[Any] = [
            None if isinstance(value, TensorBase) else kept(value) for value in spec.values
        ]
        self.raw = self.template
        if op.pointwise and spec.outputs:  # numbers become arrays
            self.raw = [
                spec.key.scalar(value) if slot not in slots else None
                for slot, value in enumerate(self.template)
            ]
        self.slots = slots
        self.arg_indices = arg_indices
        self.function: Any = None
        self.recordings: dict[int, Any] = {}
        self.native = False
        self.listed = False
        self.keys: tuple[Any, ...] | None = None
        self.given: tuple[Any, ...] = ()
        self.names: tuple[str, ...] = ()
        self.rest: tuple[Any, ...] = ()
        self.following: CachedCall | None = None
        self.key = spec.key
        self.outputs = spec.outputs
        self.result: DispatchKey | None = None
        self.shape: tuple[int, ...] | None = None
        if len(spec.outputs) == 1:
            self.shape, dtype = spec.outputs[0]
            if self.shape is not None:
                self.result = spec.key.with_dtype(dtype)

    def fill(self, args: tuple[Any, ...]) -> list[Any]:
        """Return the kernel's arguments with the tensors of a call."""
        values = self.template.copy()
        for number, slot in enumerate(self.slots):
            values[slot] = args[self.arg_indices[number]]
        return values


def _equals(planned: Any, given: Any) -> bool:
    """Return whether two plain values are the same; where it takes long to tell, that they are not."""
    kind = type(given)
    if kind is not type(planned):
        return False
    if kind is tuple or kind is list:
        if len(given) != len(planned):
            return False
        for index in range(len(planned)):
            if type(planned[index]) is not int or type(given[index]) is not int:
                return False
    elif kind is float:
        return planned == given and (bool(given) or repr(planned) == repr(given))  # -0.0 is 0.0
    elif kind is not int:
        return False
    return bool(planned == given)


class CallCache:
    """The cached calls of one op, and what served the latest one; of view ops that is a plan.

    Those of a view op are `by_shape` if its second argument is a tensor that tells a shape, and no more.
    `delegates` tells whether the op's rule made a call of other ops instead, `converts` whether it made
    tensors of its arguments, by a conversion say.
    """

    __slots__ = (
        "by_shape", "calls", "converts", "delegates", "latest", "missed", "recent", "refused", "replayed",
        "replays", "unrecorded",
    )  # fmt: skip

    def __init__(self) -> None:
        self.calls: dict[Any, Any] = {}
        self.by_shape = False
        self.latest: PlannedCall | None = None
        self.recent: CachedCall | None = None
        self.missed = 0  # plans that were not kept, see store_plan
        self.replays: dict[Any, Any] = {}  # see .replay
        self.replayed: Any = None  # the latest of them
        self.converts = self.delegates = False
        self.refused = self.unrecorded = 0
        _caches.append(self)

    def recalled(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], listed: bool
    ) -> CachedCall | None:
        """Return the cached call that such a call is, if it is the latest one or what followed that.

        Of a `listed` one the first argument is a list of tensors. One function, as calls cost in Python.
        """
        cached = self.recent
        if cached is None:
            return None
        if kwargs:
            gathered = list(args)
            for value in kwargs.values():
                gathered.append(value)  # noqa: PERF402  compiled, the quickest way
            args = tuple(gathered)
        values = args
        for turn in range(2):
            if cached is None:
                return None
            keys = cached.keys
            alike = keys is not None and cached.listed == listed
            names = cached.names
            if alike and (names or kwargs):
                alike = len(names) == len(kwargs)
                if alike:
                    position = 0
                    for name in kwargs:
                        if names[position] != name:
                            alike = False
                            break
                        position += 1  # noqa: SIM113  as above
            if alike and listed:
                values = tuple(args[0])
                rest = cached.rest
                alike = len(rest) + 1 == len(args)
                for number in range(len(rest) if alike else 0):
                    plain = args[number + 1]
                    if rest[number] is not plain and not _equals(rest[number], plain):
                        alike = False
                        break
            if alike and keys is not None and len(keys) == len(values):
                given = cached.given
                for number in range(len(values)):
                    value = values[number]
                    planned = given[number]
                    if isinstance(value, TensorBase):
                        tensor = value
                        if tensor._key is not keys[number]:
                            break
                        shape = tensor._shape
                        if planned is not shape and planned is not None and planned != shape:
                            break
                    elif keys[number] is not None or (
                        planned is not value and not _equals(planned, value)
                    ):
                        break
                else:
                    if turn:
                        self.recent = cached
                    return cached
            cached = cached.following
        return None

    def note_recent(
        self, cached: CachedCall, args: tuple[Any, ...], kwargs: dict[str, Any], shaped: bool
    ) -> None:
        """Note what served the latest call behind the one before.

        Of tensors in a list the shapes matter only if it is `shaped`.
        """
        if cached.keys is None:
            if kwargs:
                cached.names = tuple(kwargs)
                args = (*args, *kwargs.values())
            values = tuple(args[0]) if cached.listed else args
            if cached.listed:
                cached.rest = tuple([kept(value) for value in args[1:]])
            cached.given = tuple(
                [
                    (value._shape if shaped else None)
                    if isinstance(value, TensorBase)
                    else kept(value)
                    for value in values
                ]
            )
            # At last: other threads take a cached call with keys for whole.
            cached.keys = tuple(
                [value._key if isinstance(value, TensorBase) else None for value in values]
            )
        before = self.recent
        if before is not None and before is not cached:
            before.following = cached
        self.recent = cached


_caches: list[CallCache] = []
_KEPT = 512


def note_latest(cache: CallCache, plan: PlannedCall) -> None:
    """Note the plan that served the latest call of a view op, behind the one before."""
    before = cache.latest
    if before is not None and before is not plan:
        before.following = plan
    cache.latest = plan


def clear_call_caches() -> None:
    """Clear the caches of all ops; a default or a kernel that they depend on has changed."""
    for cache in _caches:
        cache.calls.clear()
        plan, cache.latest = cache.latest, None
        while plan is not None:  # plans may follow each other in a circle
            plan.following, plan = None, plan.following
        call, cache.recent = cache.recent, None
        while call is not None:
            call.following, call = None, call.following
        replay, cache.replayed = cache.replayed, None
        while replay is not None:
            replay.following, replay = None, replay.following
        cache.replays.clear()
        cache.refused = cache.unrecorded = 0


def cache_call(
    op: Op,
    cache: CallCache,
    key: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    spec: Spec,
) -> CachedCall | None:
    """Cache a spec whose tensors are the call's own arguments, each of them."""
    if ambiguous((*args, *kwargs.values())) or not _declared(op, kwargs):
        return None
    everything = all_given(args, kwargs)
    tensors = [index for index, arg in enumerate(everything) if isinstance(arg, TensorBase)]
    given = {id(everything[index]): index for index in tensors}
    if not given and not any([arg is spec.key.device for arg in args]):
        return None  # where it computes does not follow from its arguments
    # Its spec has the arguments in their order.
    bound = op.kind == "composite" and op.canonical is None
    if len(given) != len(tensors) and not bound:
        # One tensor twice: which is which, only tensors that are alike can tell.
        if len(everything) > len(args):
            return None
        args = tuple([_alike(arg) if isinstance(arg, TensorBase) else arg for arg in args])
        again = _spec_of(op, args, kwargs)
        return None if again is None else cache_call(op, cache, key, args, kwargs, again)
    slots = []
    arg_indices = []
    for slot, value in enumerate(spec.values):
        if isinstance(value, TensorBase):
            index = given.get(id(value))
            if bound and slot < len(args) and args[slot] is value:
                index = slot
            if index is None:  # a tensor that the rule made, by a conversion say
                cache.converts = True
                return None
            if value._key is not spec.key and value._key.device is not spec.key.device:
                return None  # to be refused
            slots.append(slot)
            arg_indices.append(index)
        elif isinstance(value, (list, tuple)) and first_tensor(value) is not None:
            return None
    if set(arg_indices) != set(tensors) or spec.key.is_meta:
        return None  # the rule read a tensor's value
    return store_call(cache, key, CachedCall(op, spec, tuple(slots), tuple(arg_indices)))


def _declared(op: Op, kwargs: dict[str, Any]) -> bool:
    """Return whether tensors given by name stand where tensors are declared: a number's value would count."""
    kinds = op.declaration.__annotations__
    return all(
        [
            kinds.get(name) in ("Tensor", "Tensor | None")
            for name, value in kwargs.items()
            if isinstance(value, TensorBase)
        ]
    )


def cache_delegation(
    op: Op,
    cache: CallCache,
    key: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    delegated: Delegated,
) -> None:
    """Cache to which call of another op a call comes, where that takes tensors of its own arguments."""
    if delegated.function is None or not _declared(op, kwargs):
        return
    if ambiguous((*args, *kwargs.values(), *delegated.args)):
        return
    args = all_given(args, kwargs)
    given = [arg for arg in args if isinstance(arg, TensorBase)]
    slots: list[int] = []
    arg_indices: list[int] = []
    for slot, value in enumerate(delegated.args):
        if isinstance(value, TensorBase):
            found = [index for index, arg in enumerate(args) if arg is value]
            if len(found) != 1:  # by keyword, made by the rule, or one tensor twice
                return
            slots.append(slot)
            arg_indices.append(found[0])
    if not slots or len(slots) != len(given):
        return
    spec = Spec.__new__(Spec)
    spec.values, spec.key, spec.outputs = delegated.args, given[0]._key, ()
    cached = CachedCall(op, spec, tuple(slots), tuple(arg_indices))
    cached.function = delegated.function
    store_call(cache, key, cached)


def _spec_of(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Spec | None:
    if op.kind == "primitive":
        return op.function(*args, **kwargs)
    return spec_of_values(op.arguments(args, kwargs))


def spec_of_values(values: Any) -> Spec | None:
    """Return the canonical arguments of a composite's call as a spec; None for a call of no tensor's key."""
    if type(values) is Delegated:
        return None
    first = first_tensor(values)
    if first is None:
        return None
    spec = Spec.__new__(Spec)
    spec.values, spec.key, spec.outputs = values, first._key, ()
    return spec


def _alike(tensor: TensorBase) -> Any:
    return new_tensor(tensor._array, tensor._key, tensor._shape)


def store_plan(cache: CallCache, key: Any, plan: Any) -> Any:
    """Put the plan of a view into a cache, of which a loop over more positions than it keeps has little.

    So while it is full, plans are not kept, and once that were many it is cleared.
    """
    if len(cache.calls) < _KEPT:
        cache.calls[key] = plan
    else:
        cache.missed += 1
        if cache.missed >= 8 * _KEPT:
            cache.missed = 0
            cache.calls.clear()
    return plan


def store_call(cache: CallCache, key: Any, cached: Any) -> Any:
    """Put a call, or the plan of one, into the cache, which is cleared when it is full."""
    if len(cache.calls) >= _KEPT:
        cache.calls.clear()
    cache.calls[key] = cached
    return cached
