"""Cache of calls: the specs of ops for arguments of the same keys, shapes and plain values."""

from __future__ import annotations

from typing import Any

from ..tensor.base import TensorBase, new_tensor
from .keys import DispatchKey
from .op import Delegated, Op, Spec, first_tensor


def kept(value: Any) -> Any:
    """Return a plain value as a cache keeps it: a list may change later."""
    return list(value) if type(value) is list else value


def of_ints(values: list[Any]) -> bool:
    """Return whether all items of a list are ints, and no subclass of them."""
    for value in values:  # noqa: SIM110  in Python, a generator takes longer to make
        if type(value) is not int:
            return False
    return True


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


class PlannedCall:
    """A call of a view op that is planned: the tensor it was of, and its plain arguments.

    Attributes
    ----------
    key, given : DispatchKey, tuple of int
        Of the tensor.
    first, second, third, fourth : object
        The arguments after it: ints, tuples of them, dtypes, None; `ABSENT` for those that were not given.
    recording : object
        The gradient layer's own: how such a call is recorded.
    following : PlannedCall or None
        What served the op's next call when it was another one: programs repeat their calls in turn.
    """

    __slots__ = ("first", "following", "fourth", "given", "key", "recording", "second", "third")

    def __init__(self) -> None:
        self.key: DispatchKey | None = None
        self.given: tuple[int, ...] = ()
        self.first = self.second = self.third = self.fourth = ABSENT
        self.recording: Any = None
        self.following: PlannedCall | None = None

    def note_call(self, source: Any, args: tuple[Any, ...]) -> None:
        """Note the call that the plan is of, with its arguments after the tensor, at most four."""
        self.given = source._shape
        found = [tuple(arg) if isinstance(arg, (tuple, list)) else arg for arg in args]
        found += [ABSENT] * (4 - len(found))
        self.first, self.second, self.third, self.fourth = found
        self.key = source._key  # at last: other threads take a plan with a key for whole

    def is_of(self, source: Any, first: Any, second: Any, third: Any, fourth: Any) -> bool:
        """Return whether a call is like the one that the plan is of."""
        return (
            self.key is source._key
            and (self.given is source._shape or self.given == source._shape)
            and (self.first is first or _same(self.first, first))
            and (self.second is second or _same(self.second, second))
            and (self.third is third or _same(self.third, third))
            and (self.fourth is fourth or _same(self.fourth, fourth))
        )


#: Where in memory the source of a planned view has to lie: anywhere; row by row; so, and from the start of
#: its storage on, as a new tensor does.
ANYWHERE, IN_ROWS, AT_START = 0, 1, 2

#: Stands for an argument that was not given in its place: perhaps by name.
ABSENT: Any = type("nothing", (), {})()


def _same(planned: Any, given: Any) -> bool:
    """Return whether two ints, or sequences of ints, are the same; True and 1.0 are no ints."""
    if type(given) is int:
        return type(planned) is int and bool(planned == given)
    if (type(given) is list or isinstance(given, tuple)) and isinstance(planned, tuple):
        if len(given) != len(planned):
            return False
        for index in range(len(planned)):
            item = given[index]
            if type(item) is not int or planned[index] != item:
                return False
        return True
    return False


class ViewPlan(PlannedCall):
    """The view of its first argument that a call of a view op comes to.

    Attributes
    ----------
    op, values : Op, tuple
        The primitive view op, and its canonical arguments after the tensor.
    single : bool
        Whether there is one of them.
    shape : tuple of int
        The view's.
    result : DispatchKey or None
        The view's, where it shows the same bytes as other numbers.
    where : int
        Where in memory the tensor has to lie: `ANYWHERE`, `IN_ROWS`, `AT_START`.
    steps : tuple
        The view as a step from a tensor that is no view itself.
    """

    __slots__ = ("op", "result", "shape", "single", "steps", "values", "where")

    def __init__(
        self,
        op: Op,
        values: tuple[Any, ...],
        given: tuple[int, ...],
        shape: tuple[int, ...],
        result: DispatchKey | None = None,
    ) -> None:
        super().__init__()
        self.op = op
        self.values = values
        self.single = len(values) == 1
        self.shape = shape
        self.result = result
        self.where = ANYWHERE
        if result is not None:
            # The parts of a number lie where it does; others are put together of neighbours.
            self.where = ANYWHERE if len(shape) > len(given) else AT_START
        elif op.reads_layout:
            self.where = layout_read(op)
            if op.layout and _but_for_ones(given) == _but_for_ones(shape):
                self.where = ANYWHERE
        self.steps = (None, op, values)


def layout_read(op: Op) -> int:
    """Return where a tensor has to lie for a call of an op to come to what it did before."""
    if not op.reads_layout:
        return ANYWHERE
    return IN_ROWS if op.layout else AT_START


class ViewChain(PlannedCall):
    """The views, each of the one before, that a call of a view op comes to; without any, the tensor itself.

    Attributes
    ----------
    views : tuple of ViewPlan
        How each is made.
    where : int
        Where in memory the tensor has to lie, as for :class:`ViewPlan`.
    """

    __slots__ = ("views", "where")

    def __init__(self, views: tuple[ViewPlan, ...], where: int) -> None:
        super().__init__()
        self.views = views
        self.where = where


class ViewPlans(PlannedCall):
    """The views of its first argument, several, that a call of a view op comes to.

    Attributes
    ----------
    views : tuple of ViewPlan
        How each is made.
    op, values : Op or None, tuple
        The op that records all of them as one node, and its canonical arguments after the tensor; None as
        long as no call was recorded.
    separate : bool
        Whether a call that is recorded does not end in such a node, but has to be made anew.
    """

    __slots__ = ("op", "separate", "values", "views")

    def __init__(self, views: tuple[ViewPlan, ...]) -> None:
        super().__init__()
        self.views = views
        self.op: Op | None = None
        self.values: tuple[Any, ...] = ()
        self.separate = False


class RowPlans(PlannedCall):
    """The views of single positions of the first dimension, by position; None for those not asked for yet."""

    __slots__ = ("rows",)

    def __init__(self, source: Any, count: int) -> None:
        super().__init__()
        self.note_call(source, ())
        self.rows: list[ViewPlan | None] = [None] * count


def _but_for_ones(shape: tuple[int, ...]) -> list[int]:
    return [size for size in shape if size != 1]


class CallCache:
    """The cached calls of one op, and what served the latest one; of view ops that is a plan.

    Those of a view op are `by_shape` if its second argument is a tensor that tells a shape, and no more.
    `delegates` tells whether the op's rule made a call of other ops instead.
    """

    __slots__ = (
        "by_shape", "calls", "delegates", "latest", "missed", "recent", "refused", "replayed", "replays",
        "unrecorded",
    )  # fmt: skip

    def __init__(self) -> None:
        self.calls: dict[Any, Any] = {}
        self.by_shape = False
        self.latest: PlannedCall | None = None
        self.recent: CachedCall | None = None
        self.missed = 0  # plans that were not kept, see store_plan
        self.replays: dict[Any, Any] = {}  # see .replay
        self.replayed: Any = None  # the latest of them
        self.delegates = False
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


def call_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the cache key of a call: dispatch keys, shapes and plain values of its arguments."""
    parts: list[Any] = []
    for arg in args:
        if isinstance(arg, TensorBase):
            tensor = arg
            parts.append(tensor._key)
            parts.append(tensor._shape)
        else:
            parts.append(type(arg))
            if type(arg) is list and of_ints(arg):
                parts.append(tuple(arg))
                continue
            parts.append(repr(arg) if type(arg) is float and not arg else arg)  # -0.0 is 0.0
            if isinstance(arg, tuple):  # as items too, 1, 1.0 and True are equal
                parts.append(item_types(arg))
    if kwargs:
        for name, value in kwargs.items():
            if isinstance(value, TensorBase):
                tensor = value
                parts.append((name, tensor._key, tensor._shape))
                continue
            types = item_types(value) if isinstance(value, tuple) else None
            told = repr(value) if type(value) is float and not value else value
            if type(value) is list and of_ints(value):
                told = tuple(value)
            parts.append((name, type(value), told, types))
    return tuple(parts)


def any_named(kwargs: dict[str, Any], names: dict[str, str]) -> bool:
    """Return whether an argument is given by one of some names."""
    for name in kwargs:  # noqa: SIM110  in Python, a generator takes longer to make
        if name in names:
            return True
    return False


def all_given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments of a call, those in their places and behind them the tensors given by name."""
    named: list[Any] | None = None
    for value in kwargs.values():
        if isinstance(value, TensorBase):
            if named is None:
                named = []
            named.append(value)
    return args if named is None else (*args, *named)


def item_types(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the types of a tuple's items, of tuples among them those of their items."""
    return tuple([item_types(v) if isinstance(v, tuple) else type(v) for v in values])


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


def ambiguous(values: tuple[Any, ...]) -> bool:
    """Return whether values, by :func:`call_key`, have the key of others: with zeros that are no floats."""
    for value in values:  # noqa: SIM110  in Python, a generator takes longer to make
        if type(value) is not float and zeros((value,)):
            return True
    return False


def zeros(values: tuple[Any, ...]) -> bool:
    """Return whether a value is 0.0 or -0.0, which are one as keys, or has one as a part or an item."""
    for value in values:
        if isinstance(value, (float, complex)):
            if not value.real or (not value.imag and isinstance(value, complex)):
                return True
        elif isinstance(value, (tuple, list)) and zeros(tuple(value)):
            return True
    return False


def exact_key(value: Any) -> Any:
    """Return what tells a plain value from one of its type that equals it."""
    if isinstance(value, tuple):
        return item_types(value), repr(value) if zeros(value) else None
    return repr(value) if isinstance(value, (float, complex)) and zeros((value,)) else None


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
