"""Records of ops that draw random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import (
    COMPLEXES,
    FLOATS,
    INTEGRAL,
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int64,
    uint8,
)
from tensorplug.core.device.generator import Generator

from ..records import ErrorSample, OpRecord, Sample

_RANDOM = {
    "out": "each call draws other numbers",
    "inplace": "each call draws other numbers",
    "torch": "torch's generator gives other numbers",
}
_REAL = (*INTEGRAL, *FLOATS)
_OURS = {"torch": "not an op of torch's"}


def _host(tensor: Any) -> Any:
    return np.asarray(tensor.detach().cpu().tolist())


def _sized(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in ((), (3,), (2, 0), (20, 30)):
        yield Sample(shape, dtype=dtype, device=make.device)
    yield Sample(2, 3, dtype=dtype, device=make.device)
    yield Sample(4, dtype=dtype, device=make.device, generator=Generator(make.device))


def _within(low: float, high: float, *, open_end: bool = True) -> Callable[[Any, Sample], None]:
    def check(result: Any, sample: Sample) -> None:
        values = _host(result)
        for part in (values.real, values.imag) if values.dtype.kind == "c" else (values,):
            assert (part >= low).all(), sample
            assert (part < high if open_end else part <= high).all(), sample

    return check


def _like_normal(result: Any, sample: Sample) -> None:
    values = _host(result)
    assert np.isfinite(values).all()
    if values.size > 300:
        assert abs(values.mean()) < 0.2
        assert abs(values.std() - 1) < 0.15


def _sized_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(-1), RuntimeError, "negative")
    yield ErrorSample(Sample(2, dtype=int64), NotImplementedError, "int64")
    yield ErrorSample(Sample(2, generator=3), TypeError, "Generator")


def _randint(make: Any, dtype: DType) -> Iterator[Sample]:
    options: dict[str, Any] = {"dtype": dtype, "device": make.device}
    yield Sample(10, (3, 4), **options)
    yield Sample(3, 5, (), **options)
    yield Sample(low=0, high=1, size=(2,), **options)
    yield Sample(2, (0,), **options)


def _randint_check(result: Any, sample: Sample) -> None:
    values = _host(result)
    low, high = (3, 5) if sample.args[:2] == (3, 5) else (0, 10)
    assert ((values >= low) & (values < high) & (values == np.floor(values))).all()


def _randint_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(5, 5, (2,)), RuntimeError, "less than")
    yield ErrorSample(Sample(300, (2,), dtype=uint8), RuntimeError, "out of bounds")
    yield ErrorSample(Sample(5), TypeError, "high|size")
    yield ErrorSample(Sample(5, 2), TypeError, "tuple of ints")


def _randperm(make: Any, dtype: DType) -> Iterator[Sample]:
    for n in (0, 1, 20):
        yield Sample(n, dtype=dtype, device=make.device)


def _randperm_check(result: Any, sample: Sample) -> None:
    assert sorted(_host(result).tolist()) == list(range(sample.args[0]))


def _like(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3))
    yield Sample(make())
    yield Sample(make(0, 3))


def _normal(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3), 0.5)
    yield Sample(2.0, make(2, 3, low=0.1, high=1.0))
    yield Sample(make(2, 1), make(3, low=0.1, high=1.0))
    yield Sample(0.0, 1.0, (2, 3), dtype=dtype, device=make.device)
    yield Sample(make(0), 1.0)
    yield Sample(make(), make(0, low=0.1, high=1.0))


def _finite(result: Any, sample: Sample) -> None:
    assert np.isfinite(_host(result)).all()


def _normal_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(0.0, 1.0), TypeError, "size")
    yield ErrorSample(Sample(0.0, -1.0, (2,)), RuntimeError, "std")


def _fill(*arguments: Any) -> Callable[[Any, DType], Iterator[Sample]]:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        yield Sample(make(20, 30), *arguments)
        yield Sample(make(), *arguments)
        yield Sample(make(0), *arguments)

    return samples


def _fill_errors(match: str, *arguments: Any) -> Callable[[Any], Iterator[ErrorSample]]:
    return lambda make: iter([ErrorSample(Sample(make(2), *arguments), RuntimeError, match)])


def _bernoulli(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(20, 30, low=0.0, high=1.0))
    yield Sample(make(low=0.0, high=1.0))
    yield Sample(make(0))
    yield Sample(make(2, 3), 0.5)


def _zeros_and_ones(result: Any, sample: Sample) -> None:
    values = _host(result)
    assert ((values == 0) | (values == 1)).all()


def _multinomial(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(5, low=0.1, high=1.0), 3)
    yield Sample(make(2, 5, low=0.1, high=1.0), 5)
    yield Sample(make(2, 5, low=0.1, high=1.0), 1)
    yield Sample(make(5, low=0.1, high=1.0), 30, True)
    yield Sample(make(2, 5, low=0.1, high=1.0), 30, replacement=True)
    yield Sample(make(0, 5), 3)


def _multinomial_check(result: Any, sample: Sample) -> None:
    weights, count = sample.args[:2]
    values = _host(result).reshape(result.shape)
    assert result.dtype is int64
    assert values.shape == (*weights.shape[:-1], count)
    assert ((values >= 0) & (values < weights.shape[-1])).all()
    if len(sample.args) == 2 and not sample.kwargs:
        for row in values.reshape(-1, count):
            assert len(set(row.tolist())) == count


def _multinomial_errors(make: Any) -> Iterator[ErrorSample]:
    weights = make(3, low=0.1, high=1.0)
    yield ErrorSample(Sample(weights, 0), RuntimeError, "n_sample <= 0")
    yield ErrorSample(Sample(weights, 4), RuntimeError, "without replacement")
    yield ErrorSample(Sample(make(2, 2, 2), 1), RuntimeError, "1 or 2 dim")


def _poisson(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4, low=0.0, high=40.0))
    yield Sample(make(low=0.0, high=5.0))
    yield Sample(make(0, low=0.0, high=5.0))


def _counts(result: Any, sample: Sample) -> None:
    values = _host(result)
    assert ((values >= 0) & (values == np.floor(values))).all()


def _bits(make: Any, dtype: DType) -> Iterator[Sample]:
    device = Device(make.device)
    yield Sample((9,), 1, 0, device)
    yield Sample((2, 3), 2**64 - 1, 2**70 + 5, device)
    yield Sample((), 0, 2**64 - 1, device)
    yield Sample((0, 2), 0, 0, device)


def philox(shape: tuple[int, ...], seed: int, offset: int, device: Any = None) -> Any:
    """Return the words of Philox 4x32-10, computed one block at a time in Python's integers."""
    words: list[int] = []
    count = math.prod(shape)
    for block in range(offset, offset + -(-count // 4)):
        counter = [block >> shift & 0xFFFFFFFF for shift in (0, 32, 64, 96)]
        key = [seed & 0xFFFFFFFF, seed >> 32]
        for _ in range(10):
            first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
            counter = [
                second >> 32 ^ counter[1] ^ key[0],
                second & 0xFFFFFFFF,
                first >> 32 ^ counter[3] ^ key[1],
                first & 0xFFFFFFFF,
            ]
            key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
        words += counter
    return np.array(words[:count], np.int64).reshape(shape)


def _counted(*more: Any) -> Callable[[Any, DType], Iterator[Sample]]:
    """Return samples of ops that draw by counter, with further arguments."""

    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        device = Device(make.device)
        for shape, seed, offset in (
            ((9,), 1, 0),
            ((30, 7), 2**64 - 1, 2**70 - 3),
            ((), 0, 2**64 - 1),
            ((0, 2), 0, 0),
        ):
            yield Sample(shape, seed, offset, dtype, device, *more)

    return samples


def _streams(shape: tuple[int, ...], seed: int, offset: int, count: int) -> list[Any]:
    """Return the words of which `count` make a number each."""
    blocks = -(-math.prod(shape) // 4)
    return [philox(shape, seed, offset + n * blocks) for n in range(count)]


def _uniform_by_counter(
    shape: tuple[int, ...], seed: int, offset: int, dtype: DType, device: Any
) -> Any:
    if dtype is float64:
        high, low = _streams(shape, seed, offset, 2)
        return ((high << 21) + (low >> 11)) * 2.0**-53
    kept = {float32: 24, float16: 11, bfloat16: 8}[dtype]
    return (_streams(shape, seed, offset, 1)[0] >> (32 - kept)) * 2.0**-kept


def _normal_by_counter(
    shape: tuple[int, ...], seed: int, offset: int, dtype: DType, device: Any
) -> Any:
    if dtype is float64:
        radius = 1 - _uniform_by_counter(shape, seed, offset, dtype, device)
        blocks = -(-math.prod(shape) // 4)
        angle = _uniform_by_counter(shape, seed, offset + 2 * blocks, dtype, device)
    else:
        upper, lower = _streams(shape, seed, offset, 2)
        radius, angle = (upper + 1) * 2.0**-32, (lower >> 8) * 2.0**-24
    return np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * angle)


def _integers_by_counter(
    shape: tuple[int, ...], seed: int, offset: int, dtype: DType, device: Any, low: int, high: int
) -> Any:
    span = high - low
    upper, lower = _streams(shape, seed, offset, 2)
    drawn = (upper * span) >> 32
    if span > 1 << 16:
        drawn = (((upper & 0x7FFFFFFF) << 32) + lower) % span
    return (drawn + low).astype(dtype.name)


def _wide(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield samples of numbers of two words."""
    if dtype in (int64, float64):
        yield from _counted(-(10**12), 2**40)(make, dtype)
        yield from _counted(-5, 2**32 - 5)(make, dtype)


def _chances(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from _counted(0.4)(make, dtype)
    device = Device(make.device)
    yield Sample((2, 3), 1, 0, dtype, device, make(2, 3, low=0.0, high=1.0))
    yield Sample((2, 3), 1, 0, dtype, device, make(3, low=0.0, high=1.0))


def _bernoulli_by_counter(
    shape: tuple[int, ...], seed: int, offset: int, dtype: DType, device: Any, chance: Any
) -> Any:
    compared = float64 if dtype is float64 else float32
    drawn = _uniform_by_counter(shape, seed, offset, compared, device)
    return (drawn < chance).astype(np.float64)


def _rates(make: Any, dtype: DType) -> Iterator[Sample]:
    device = Device(make.device)
    for shape, most in (((17,), 9.0), ((3, 5), 60.0), ((), 4.0), ((), 1e5), ((0, 2), 1.0)):
        yield Sample(shape, 7, 1 << 64, dtype, device, make(*shape, low=0.0, high=most))


def _poisson_number(rate: float, pairs: Iterator[tuple[float, float]]) -> int:
    """Return one number by inversion, or by transformed rejection (PTRS, Hörmann 1993)."""
    if rate < 10:
        draw, _ = next(pairs)
        chance = below = math.exp(-rate)
        count = 0
        while draw >= below:
            count += 1
            chance *= rate / count
            below += chance
        return count
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    for first, second in pairs:
        u, v = first - 0.5, 1.0 - second
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        scale = v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (us * us) + b)
        if math.log(scale) <= k * math.log(rate) - rate - math.lgamma(k + 1):
            return k
    raise AssertionError


def _poisson_by_counter(
    shape: tuple[int, ...], seed: int, offset: int, dtype: DType, device: Any, rates: Any
) -> Any:
    flat = np.asarray(rates, np.float64).reshape(-1)

    def pairs(element: int) -> Iterator[tuple[float, float]]:
        while True:
            a, b, c, d = map(int, philox((4,), seed, offset + element))
            yield ((a << 21) + (b >> 11)) * 2.0**-53, ((c << 21) + (d >> 11)) * 2.0**-53
            element += len(flat)

    numbers = [_poisson_number(float(rate), pairs(n)) for n, rate in enumerate(flat)]
    return np.array(numbers, np.float64).reshape(shape)


def _weights(make: Any, dtype: DType) -> Iterator[Sample]:
    device = Device(make.device)
    yield Sample((9,), 3, 1, dtype, device, make(6, low=0.1, high=1.0))
    yield Sample((2, 30), 3, 1, dtype, device, make(2, 4, low=0.1, high=1.0))
    yield Sample((0, 2), 3, 1, dtype, device, make(0, 4))
    yield Sample((5,), 3, 1, dtype, device, make(1, low=0.1, high=1.0))


def _choices_by_counter(
    shape: tuple[int, ...], seed: int, offset: int, dtype: DType, device: Any, weights: Any
) -> Any:
    draws = _uniform_by_counter(shape, seed, offset, dtype, device)
    steps = np.cumsum(weights, -1) / np.sum(weights, -1, keepdims=True)
    return (steps[..., None, :] <= draws[..., None]).sum(-1)


def _order_by_counter(
    shape: tuple[int, ...], seed: int, offset: int, dtype: DType, device: Any
) -> Any:
    upper, lower = _streams(shape, seed, offset, 2)
    return np.argsort(((upper & 0x7FFFFFFF) << 32) + lower, kind="stable")


def _orders(make: Any, dtype: DType) -> Iterator[Sample]:
    for count in (0, 1, 2, 65, 1000):
        yield Sample((count,), 5, 2**64 - 1, dtype, Device(make.device))


def _words(count: int) -> Any:
    """Return samples of tensors of random words, and a dtype."""

    def samples(make: Any, dtype: DType) -> Any:
        for shape in ((5,), (2, 3), (0,), ()):
            words = [make(*shape, dtype=int64).abs() * 30_000_000 for _ in range(count)]
            yield Sample(*words, float32)

    return samples


def _uniform_of(words: Any, dtype: DType) -> Any:
    return ((words >> 8).astype(np.float32) * np.float32(2.0**-24)).astype(np.float32)


def _normal_of(radius: Any, angle: Any, dtype: DType) -> Any:
    first, second = (radius + 1) * 2.0**-32, (angle >> 8) * 2.0**-24
    return (np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)).astype(np.float32)


def _record(op: str, samples: Any, check: Any, dtypes: tuple[DType, ...], **options: Any) -> Any:
    skips = {**_RANDOM, **options.pop("skips", {})}
    return OpRecord(op, samples, check=check, dtypes=dtypes, gradient=False, skips=skips, **options)


_ANY = (*FLOATS, *COMPLEXES)


RECORDS = [
    OpRecord(
        "philox_bits",
        _bits,
        philox,
        dtypes=(int64,),
        gradient=False,
        skips={"torch": "not an op of torch's"},
    ),
    OpRecord(
        "uniform_of_words",
        _words(1),
        _uniform_of,
        dtypes=(int64,),
        gradient=False,
        skips={"torch": "not an op of torch's"},
    ),
    OpRecord(
        "normal_of_words",
        _words(2),
        _normal_of,
        dtypes=(int64,),
        gradient=False,
        skips={"torch": "not an op of torch's"},
    ),
    OpRecord(
        "uniform_new", _counted(), _uniform_by_counter, dtypes=FLOATS, gradient=False, skips=_OURS
    ),
    OpRecord(
        "normal_new", _counted(), _normal_by_counter, dtypes=FLOATS, gradient=False, skips=_OURS
    ),
    OpRecord(
        "integers_new",
        lambda make, dtype: iter([*_counted(3, 17)(make, dtype), *_wide(make, dtype)]),
        _integers_by_counter,
        dtypes=_REAL,
        gradient=False,
        skips=_OURS,
    ),
    OpRecord(
        "bernoulli_new",
        _chances,
        _bernoulli_by_counter,
        dtypes=FLOATS,
        gradient=False,
        skips={**_OURS, "meta": "draws on the device it is given"},
    ),
    OpRecord(
        "poisson_new",
        _rates,
        _poisson_by_counter,
        dtypes=FLOATS[2:],
        gradient=False,
        skips={**_OURS, "meta": "how many rounds it takes depends on the rates"},
    ),
    OpRecord(
        "multinomial_new",
        _weights,
        _choices_by_counter,
        dtypes=FLOATS[2:],
        gradient=False,
        skips={**_OURS, "meta": "draws on the device it is given"},
    ),
    OpRecord(
        "fewest_positive",
        lambda make, dtype: iter(
            [
                Sample(make(3, 5, low=-0.5, high=1.0).clamp(min=0)),
                Sample(make(4)),
                Sample(make(0, 2)),
            ]
        ),
        lambda weights: (
            -1 if (weights < 0).any() else int((weights > 0).sum(-1).min(initial=len(weights) or 1))
        ),
        dtypes=FLOATS,
        gradient=False,
        skips={**_OURS, "meta": "reads the weights"},
    ),
    OpRecord(
        "permutation_new",
        _orders,
        _order_by_counter,
        dtypes=(int64,),
        gradient=False,
        skips=_OURS,
    ),
    _record("rand", _sized, _within(0, 1), _ANY, errors=_sized_errors),
    _record("randn", _sized, _like_normal, _ANY, errors=_sized_errors),
    _record("randint", _randint, _randint_check, _REAL, errors=_randint_errors),
    _record("randperm", _randperm, _randperm_check, _REAL),
    _record("rand_like", _like, _within(0, 1), _ANY),
    _record("randn_like", _like, _like_normal, _ANY),
    _record(
        "randint_like",
        lambda make, dtype: iter(
            [Sample(make(2, 3), 5), Sample(make(2), 2, 7), Sample(make(0), 3), Sample(make(), 3)]
        ),
        _within(0, 7),
        _REAL,
    ),
    _record("normal", _normal, _finite, FLOATS, errors=_normal_errors),
    _record(
        "random.uniform",
        _fill(2, 4),
        _within(2, 4, open_end=False),
        FLOATS,
        errors=_fill_errors("range", 3, 2),
    ),
    _record("random.normal", _fill(0, 1), _like_normal, FLOATS, errors=_fill_errors("std", 0, -1)),
    _record(
        "random.random", _fill(3, 9), _within(3, 9), _REAL, errors=_fill_errors("less than", 3, 3)
    ),
    _record(
        "random.exponential",
        _fill(2.0),
        _within(0, math.inf),
        FLOATS,
        errors=_fill_errors("lambda", 0.0),
    ),
    _record(
        "random.geometric",
        _fill(0.5),
        _within(1, math.inf),
        _REAL,
        errors=_fill_errors("in \\(0, 1\\)", 1.0),
    ),
    _record("random.cauchy", _fill(), _finite, FLOATS[2:], errors=_fill_errors("sigma", 0, -1)),
    _record(
        "random.log_normal",
        _fill(0, 0.5),
        _within(0, math.inf),
        FLOATS,
        errors=_fill_errors("std", 0, 0),
    ),
    _record(
        "random.bernoulli",
        _fill(0.3),
        _zeros_and_ones,
        (*_REAL, bool_),
        errors=_fill_errors("p_in", 1.5),
    ),
    _record("bernoulli", _bernoulli, _zeros_and_ones, FLOATS, errors=_fill_errors("p_in", 1.5)),
    _record("multinomial", _multinomial, _multinomial_check, FLOATS, errors=_multinomial_errors),
    _record(
        "poisson",
        _poisson,
        _counts,
        FLOATS,
        errors=lambda make: iter(
            [ErrorSample(Sample(make(2, low=-2.0, high=-1.0)), RuntimeError, "non-negative")]
        ),
        skips={"meta": "how many rounds it takes depends on the rates"},
    ),
]
