"""The in-place fills ``uniform_``, ``normal_`` and their kind.

They are declared as ops that return a new tensor, under the names ``random.…``; users call the in-place
methods that come with them. Each has a plan: which numbers are drawn, and what is done to them. A kernel
that takes ``out`` draws them into the tensor itself, where a write into it is no more than that; else they
are made aside and copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import index
from typing import TYPE_CHECKING, Any

from ...device.dtypes import (
    ALL_DTYPES,
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGER,
    Number,
    finfo,
    float32,
    float64,
    iinfo,
)
from ...device.generator import Generator
from ...dispatch.arguments import scalar_of
from ...dispatch.keys import DispatchKey
from ...dispatch.op import Op
from ...dispatch.op_registry import composite, handle, in_place
from ...dispatch.state import dispatch_state
from ...dispatch.writes import inplace, is_free, store
from ...errors import type_name
from ...tensor.base import bump_version
from ..rules import number
from .distributions import checked_chance, source_of
from .numbers import bernoulli_numbers, integer_numbers, normal_numbers, uniform_numbers
from .random import check_deviation, check_range, fresh
from .words import significand_bits

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ()

_ADD, _DIV, _EXP, _FLOOR, _LOG1P, _MUL, _NEG, _SUB, _TAN = [
    handle(name) for name in ("add", "div", "exp", "floor", "log1p", "mul", "neg", "sub", "tan")
]

_LARGEST = {dtype: finfo(dtype).max for dtype in ALL_DTYPES if dtype.is_floating_point}

# An op that is applied in place, and the numbers that it takes.
_Steps = list[tuple[Op, tuple[Number, ...]]]
# What draws, the key it draws in, the generator, what else it is told, and what is done to the numbers.
_Plan = tuple[Callable[..., Any], DispatchKey, Generator, tuple[Any, ...], _Steps]


def _make(input: Any, plan: _Plan) -> Any:
    """Return what a plan gives, as a new tensor of the shape and dtype of `input`."""
    numbers, key, source, more, steps = plan
    if more:
        drawn = numbers(input._shape, key, source, *more)
    else:
        drawn = fresh(numbers, input._shape, key, source)
    _apply(steps, drawn)
    own = input._key
    return drawn if key is own else drawn.to(own.dtype)


def _apply(steps: _Steps, drawn: Any) -> None:
    for op, values in steps:
        inplace(op, op.inplace or op.name, drawn, values, {})


def _apply_raw(steps: _Steps, drawn: Any) -> None:
    """Apply the steps to memory that nobody looks at yet, without the checks of calls in place."""
    key = drawn._key
    array = drawn._array
    for op, values in steps:
        write = key.writers[op.index]
        operand = scalar_of(values[0], key) if values else None
        if write is None or (values and operand is None):
            inplace(op, op.inplace or op.name, drawn, values, {})
        elif values:
            write(array, operand, out=array)
        else:
            write(array, out=array)


def _alike(planned: tuple[Any, ...], given: tuple[Any, ...]) -> bool:
    """Return whether two calls have the same numbers for arguments."""
    if len(planned) != len(given):
        return False
    for position, value in enumerate(given):
        before, kind = planned[position], type(value)
        if kind is not type(before) or (kind is not int and kind is not float) or before != value:
            return False
    return True


def _warns(plan: _Plan) -> bool:
    """Return whether making a plan has warned, as of bounds that its dtype has no numbers for."""
    _, key, _, more, _ = plan
    if key.dtype.category != FLOATING or len(more) < 2:
        return False
    exact = 1 << (53 if key.dtype is float64 else significand_bits(key.dtype))
    return not (-exact <= more[0] <= exact and -exact <= more[1] - 1 <= exact)


def _filling(plan_of: Callable[..., _Plan]) -> Callable[..., Any]:
    """Return the body of an in-place variant that draws into its target where it may.

    A call like the latest one, without names, has the same plan.
    """
    latest: tuple[Any, ...] = (None, (), None)

    def fill(target: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal latest
        if dispatch_state.layers_active or not is_free(target):
            return NotImplemented
        own = target._key
        of, given, plan = latest
        if of is not own or kwargs or not _alike(given, args):
            plan = plan_of(target, *args, **kwargs)
            if not kwargs and _alike(args, args) and not _warns(plan):
                latest = own, args, plan
        numbers, key, source, more, steps = plan
        if own.is_meta or key.dtype.category == COMPLEX:
            return NotImplemented
        shape = target._shape
        if key is own:
            into = target._array
            if more:
                drawn = numbers(shape, key, source, *more, into)
            else:
                drawn = numbers(shape, key, source, into)
            if drawn is None:
                return NotImplemented
            if steps:
                _apply_raw(steps, drawn)  # a tensor of its own on the same memory
        else:
            drawn = numbers(shape, key, source, *more)
            _apply_raw(steps, drawn)
            with own.runtime.quiet():
                store(target, drawn._array, drawn._key)
        bump_version(target)
        return target

    return fill


def _scaling(factor: Number, shift: Number) -> _Steps:
    """Return what multiplies, and then adds; by 1 and 0 that would be calls for nothing."""
    steps: _Steps = []
    if factor != 1:
        steps.append((_MUL, (factor,)))
    if shift != 0:
        steps.append((_ADD, (shift,)))
    return steps


def _precise(input: Any) -> DispatchKey:
    """Return what numbers that are computed with are drawn in."""
    key: DispatchKey = input._key
    return key.with_dtype(float64 if key.dtype is float64 else float32)


# --- uniform and normal -----------------------------------------------------------------------


def _uniform_plan(
    input: Any, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None
) -> _Plan:
    source = source_of(input, generator, "uniform_", FLOATING, COMPLEX)
    low: Any = number(from_, "uniform_", "from")
    high: Any = number(to, "uniform_", "to")
    if not low <= high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    dtype = input._key.dtype
    largest = _LARGEST.get(dtype, math.inf)  # complex numbers have none
    if not high - low <= largest:
        raise RuntimeError(
            f"uniform_(): uniform_ expects to-from <= {largest:g}, the largest of {dtype.name}, but found "
            f"from={low} and to={high}"
        )
    return uniform_numbers, input._key, source, (), _scaling(high - low, low)


@composite(name="random.uniform", inplace=True, method=False)
def uniform(
    input: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Return numbers drawn evenly from [`from_`, `to`) in the shape and dtype of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.empty(100).uniform_(2, 3)
    >>> bool(((x >= 2) & (x < 3)).all())
    True
    """
    made: Tensor = _make(input, _uniform_plan(input, from_, to, generator=generator))
    return made


in_place(uniform)(_filling(_uniform_plan))


def _normal_plan(
    input: Any, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> _Plan:
    source = source_of(input, generator, "normal_", FLOATING, COMPLEX)
    center, deviation = number(mean, "normal_", "mean"), number(std, "normal_", "std")
    check_deviation(deviation, "normal_")
    return normal_numbers, input._key, source, (), _scaling(deviation, center)


@composite(name="random.normal", inplace=True, method=False)
def normal(
    input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Return numbers of a normal distribution in the shape and dtype of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.empty(2).normal_(0, 1).shape
    Size([2])
    """
    made: Tensor = _make(input, _normal_plan(input, mean, std, generator=generator))
    return made


in_place(normal)(_filling(_normal_plan))


# --- whole, and yes or no ---------------------------------------------------------------------


def _bounds(bounds: tuple[int | None, ...], named: dict[str, int | None]) -> Any:
    """Return the bounds of ``random_()``, given in their places or by name; None stands for the dtype's."""
    given: dict[str, int | None] = dict(
        zip(("to",) if len(bounds) == 1 else ("from", "to"), bounds, strict=False)
    )
    if len(bounds) > 2 or named.keys() - {"from", "to"} or given.keys() & named.keys():
        raise TypeError(
            "random_() takes 'from' and 'to', each once, got "
            f"{len(bounds)} numbers and {', '.join(named) or 'no names'}"
        )
    given |= named
    return given.get("from"), given.get("to")


def _whole(bound: Any) -> int:
    """Return a bound of ``random_()``, which is an int."""
    if isinstance(bound, bool) or not hasattr(bound, "__index__"):
        raise TypeError(f"random_(): the bounds must be ints, not {type_name(bound)}")
    return index(bound)


def _random_plan(
    input: Any,
    *bounds: int | None,
    generator: Generator | None = None,
    **named: int | None,
) -> _Plan:
    source = source_of(input, generator, "random_", BOOL)
    dtype = input._key.dtype
    from_, to = bounds if len(bounds) == 2 and not named else _bounds(bounds, named)
    low = 0 if from_ is None else _whole(from_)
    if to is not None:
        high = _whole(to)
    elif dtype.category == FLOATING:
        high = (1 << (53 if dtype is float64 else significand_bits(dtype))) + 1
    else:
        high = 2 if dtype.category == BOOL else iinfo(dtype).max + 1
    check_range(low, high, dtype, "random_")
    return integer_numbers, input._key, source, (low, high), []


@composite(name="random.random", inplace=True, method=False)
def random(
    input: Tensor,
    *bounds: int | None,
    generator: Generator | None = None,
    **named: int | None,
) -> Tensor:
    """Return whole numbers in the shape and dtype of `input`.

    ``random_()`` draws from all non-negative ones that the dtype represents, ``random_(to)`` from 0
    to `to` - 1, ``random_(from, to)`` from `from` to `to` - 1, ``random_(from, None)`` from `from` on.
    Both bounds can be given by name.

    Examples
    --------
    >>> import tensorplug as tp
    >>> int(tp.empty(100).random_(3, 5).max())
    4
    """
    made: Tensor = _make(input, _random_plan(input, *bounds, generator=generator, **named))
    return made


in_place(random)(_filling(_random_plan))


def _bernoulli_plan(input: Any, p: Any = 0.5, *, generator: Generator | None = None) -> _Plan:
    source = source_of(input, generator, "bernoulli_", BOOL)
    chance = checked_chance(p, "bernoulli_")
    return bernoulli_numbers, input._key, source, (chance,), []


@composite(name="random.bernoulli", inplace=True, method=False)
def bernoulli(
    input: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """Return ones with chance `p`, else zeros, in the shape and dtype of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.empty(3).bernoulli_(1.0)
    tensor([1., 1., 1.])
    """
    made: Tensor = _make(input, _bernoulli_plan(input, p, generator=generator))
    return made


in_place(bernoulli)(_filling(_bernoulli_plan))


# --- made of uniform and normal numbers -------------------------------------------------------


def _exponential_plan(
    input: Any, lambd: float = 1.0, *, generator: Generator | None = None
) -> _Plan:
    source = source_of(input, generator, "exponential_")
    rate: Any = number(lambd, "exponential_", "lambd")
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
    steps: _Steps = [(_NEG, ()), (_LOG1P, ()), (_DIV, (-rate,))]
    return uniform_numbers, _precise(input), source, (), steps


@composite(name="random.exponential", inplace=True, method=False)
def exponential(input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Return numbers of the density λ exp(-λ x), x > 0, in the shape and dtype of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> bool((tp.empty(100).exponential_() >= 0).all())
    True
    """
    made: Tensor = _make(input, _exponential_plan(input, lambd, generator=generator))
    return made


in_place(exponential)(_filling(_exponential_plan))


def _geometric_plan(input: Any, p: float, *, generator: Generator | None = None) -> _Plan:
    source = source_of(input, generator, "geometric_", INTEGER)
    chance: Any = number(p, "geometric_", "p")
    if not 0 < chance < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={chance:g}")
    trials: _Steps = [(_NEG, ()), (_LOG1P, ()), (_DIV, (math.log1p(-chance),))]
    steps: _Steps = [*trials, (_FLOOR, ()), (_ADD, (1,))]
    return uniform_numbers, _precise(input), source, (), steps


@composite(name="random.geometric", inplace=True, method=False)
def geometric(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Return the number of trials, from 1, until one of chance `p` succeeds.

    Examples
    --------
    >>> import tensorplug as tp
    >>> bool((tp.empty(100).geometric_(0.5) >= 1).all())
    True
    """
    made: Tensor = _make(input, _geometric_plan(input, p, generator=generator))
    return made


in_place(geometric)(_filling(_geometric_plan))


def _cauchy_plan(
    input: Any, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> _Plan:
    source = source_of(input, generator, "cauchy_")
    center: Any = number(median, "cauchy_", "median")
    scale: Any = number(sigma, "cauchy_", "sigma")
    if not scale > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={scale:g}")
    angle: _Steps = [(_SUB, (0.5,)), (_MUL, (math.pi,)), (_TAN, ())]
    return uniform_numbers, _precise(input), source, (), [*angle, *_scaling(scale, center)]


@composite(name="random.cauchy", inplace=True, method=False)
def cauchy(
    input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Return numbers of a Cauchy distribution in the shape and dtype of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.empty(2).cauchy_().shape
    Size([2])
    """
    made: Tensor = _make(input, _cauchy_plan(input, median, sigma, generator=generator))
    return made


in_place(cauchy)(_filling(_cauchy_plan))


def _log_normal_plan(
    input: Any, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> _Plan:
    source = source_of(input, generator, "log_normal_")
    center: Any = number(mean, "log_normal_", "mean")
    deviation: Any = number(std, "log_normal_", "std")
    if not deviation > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={deviation:g}")
    steps: _Steps = [*_scaling(deviation, center), (_EXP, ())]
    return normal_numbers, _precise(input), source, (), steps


@composite(name="random.log_normal", inplace=True, method=False)
def log_normal(
    input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Return *e* to the power of normal numbers, in the shape and dtype of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> bool((tp.empty(10).log_normal_() > 0).all())
    True
    """
    made: Tensor = _make(input, _log_normal_plan(input, mean, std, generator=generator))
    return made


in_place(log_normal)(_filling(_log_normal_plan))
