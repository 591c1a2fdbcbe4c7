"""Random calls of promotion, reductions, indexing and views with both libraries.

Prints, by area, how many there were and what differs for none of the reasons that are known. The arguments
are the seeds.
"""

# ruff: noqa: SIM905  words are easier to read

import itertools
import json
import random
import sys
import warnings

import numpy as np
import torch
from call_outcomes import outcome, same

import tensorplug as tp

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
BINARY = (
    "add sub mul true_divide floor_divide remainder fmod pow maximum minimum bitwise_and bitwise_or eq lt "
    "atan2 hypot where copysign logical_and ldexp xlogy float_power gcd"
).split()
#: Those that divide by their second argument, or raise to it: it is not zero.
DIVIDING = ("pow", "float_power", "floor_divide", "remainder", "fmod", "true_divide")
#: Those that torch has of tensors only.
OF_TENSORS = ("maximum", "minimum", "atan2", "hypot", "gcd", "ldexp", "where")
REDUCTIONS = (
    "sum prod mean std var amax amin argmax argmin any all logsumexp norm median nanmedian nansum cumsum "
    "cumprod max min std_mean var_mean count_nonzero aminmax mode sort argsort logcumsumexp cummax nanmean "
    "unique msort"
).split()
DIMS = (
    {},
    {"dim": 0},
    {"dim": -1},
    {"dim": -1, "keepdim": True},
    {"dim": (0, 1)},
    {"dim": 5},
    {"dim": []},
)
INDICES = (
    0, -1, 1, 5, slice(None), slice(1, None), slice(None, None, 2), slice(-2, None), slice(3, 1), None, ...,
    True, False, "[0, 1]", "[[1], [0]]", "[True, False, True]", "1", "[]", "int32 [-1, -2]", "uint8 [0, 1]",
    [0, 1], [True, False, True], np.int64(1), np.array([0, 1]), [[0, 1], [1, 0]], 1.5, b"a", range(2), (0, 1),
)  # fmt: skip
VIEWS = (
    ("transpose", 0, 1), ("t",), ("permute", 1, 0), ("permute", 2, 0, 1), ("reshape", -1), ("view", -1),
    ("view", 2, -1), ("unsqueeze", 0), ("unsqueeze", -1), ("squeeze",), ("squeeze", 0), ("squeeze", (0, 1)),
    ("flatten",), ("expand", 2, -1, -1), ("narrow", 0, 1, 1), ("select", 0, 1), ("diagonal",), ("ravel",),
    ("unfold", 0, 2, 1), ("movedim", 0, -1), ("moveaxis", 0, 1), ("swapaxes", 0, 1), ("chunk", 2),
    ("split", 2), ("unbind",), ("mT",), ("T",), ("contiguous",), ("as_strided", (2, 2), (1, 2)),
    ("unflatten", 0, (1, -1)), ("repeat", 2, 1), ("tile", 2), ("roll", 1), ("flip", 0), ("tensor_split", 2),
    ("hsplit", 2), ("dsplit", 1), ("view_as_real",), ("broadcast_to", (2, 2, 3)), ("diag",), ("tril",),
    ("diag_embed",), ("rot90",), ("repeat_interleave", 2), ("conj",), ("clone",), ("detach",),
)  # fmt: skip
#: How many ints may follow: dimensions, offsets, numbers of parts.
MORE = {
    "diagonal": 3, "diag": 1, "tril": 1, "diag_embed": 3, "flatten": 2, "unbind": 1, "chunk": 1, "split": 1,
    "tensor_split": 1, "roll": 1, "rot90": 1, "repeat_interleave": 1, "squeeze": 1,
}  # fmt: skip
ARRANGED = ("rot90", "tril", "flip")  # whose results lie as their kernels made them


def made(t, shape, dtype, offset=0):
    numbers = (np.arange(np.prod(shape, dtype=int)) + offset) % 7
    numbers = numbers - (0 if dtype in ("bool", "uint8") else 2)
    return t.tensor(numbers.reshape(shape).tolist()).to(getattr(t, dtype))


def index(t, item):
    """Return an entry of a key; what stands in a string is a tensor."""
    if not isinstance(item, str):
        return "a" if isinstance(item, bytes) else item
    *dtype, numbers = item.split(" ", 1) if item[0].isalpha() else [item]
    kind = getattr(t, dtype[0]) if dtype else t.int64 if item == "[]" else None
    return t.tensor(json.loads(numbers.lower()), dtype=kind)


def promotion(rng):
    for name, *dtypes in itertools.product(BINARY, DTYPES, DTYPES):
        if rng.random() > 0.25:
            continue
        shapes = rng.choice(
            [[(3,), (3,)], [(3,), ()], [(), (3,)], [(), ()], [(2, 3), (3,)], [(0,), (1,)]]
        )

        def call(t, name=name, dtypes=dtypes, shapes=shapes):
            x = made(t, shapes[0], dtypes[0], 3)
            y = made(t, shapes[1], dtypes[1], 4)
            if name in DIVIDING:
                y = y * 0 + made(t, (), dtypes[1], 3)
            if name == "where":
                return t.where(made(t, shapes[0], "bool"), x, y)
            return getattr(t, name)(x, y)

        half_complex = "float16" in dtypes and any("complex" in dtype for dtype in dtypes)
        known = half_complex or (name == "ldexp" and dtypes[1] == "bool")
        yield f"{name} {dtypes} {shapes}", call, known
    for name, dtype, number in itertools.product(BINARY, DTYPES, (True, 2, 2.5, 1 + 2j)):
        if rng.random() > 0.5 or name in OF_TENSORS:
            continue
        shape = rng.choice([(3,), ()])
        known = dtype == "float16" and isinstance(number, complex)
        for said in (name, name + "_"):
            yield (
                f"{said} {dtype} {shape} {number}",
                lambda t, said=said, dtype=dtype, shape=shape, number=number: getattr(
                    made(t, shape, dtype, 3), said
                )(number),
                known,
            )


def reductions(rng):
    shapes = ((3, 4), (2, 0), (0,), (), (2, 3, 2))
    for name, dtype, shape, options in itertools.product(REDUCTIONS, DTYPES, shapes, DIMS):
        if rng.random() > 0.2:
            continue
        is_complex, empty = "complex" in dtype, 0 in shape
        known = (
            (name == "logsumexp" and options == {"dim": []})
            or (name in ("median", "nanmedian") and (dtype == "bool" or empty))
            or (name in ("amax", "amin", "mode", "cummax") and is_complex)
            or (name == "cummax" and empty)
        )
        yield (
            f"{name} {dtype} {shape} {options}",
            lambda t, name=name, dtype=dtype, shape=shape, options=options: getattr(t, name)(
                made(t, shape, dtype, 1), **options
            ),
            known,
        )


def indexing(rng):
    for _ in range(800):
        shape = rng.choice([(3, 3, 3), (3, 4), (3,), (2, 3, 4, 3)])
        items = rng.choices(INDICES, k=rng.randint(1, 4))
        value = rng.choice([1.5, 2])
        byte = any(isinstance(item, str) and "uint8" in item for item in items)
        twice = sum(item is ... for item in items) > 1

        def read(t, shape=shape, items=items):
            return made(t, shape, "float32")[tuple([index(t, item) for item in items])]

        def write(t, shape=shape, items=items, value=value):
            x = made(t, shape, "float32")
            x[tuple([index(t, item) for item in items])] = value
            return x

        yield f"read {shape} {items}", read, twice
        yield f"write {shape} {items} {value}", write, twice or byte


def varied(rng, step):
    """Return a step with other numbers in the place of some, and perhaps more of them."""
    name, *given = step
    given = [
        rng.randint(-3, 3) if type(value) is int and rng.random() < 0.3 else value
        for value in given
    ]
    given += [rng.randint(-3, 3) for _ in range(rng.randint(0, MORE.get(name, 0)))]
    return name, *given


def shown(t, x, chain):
    for name, *given in chain:
        if not hasattr(t.Tensor, name):
            x = getattr(t, name)(x, *given)
        else:
            x = getattr(x, name)
            x = x(*given) if callable(x) else x
        if isinstance(x, (tuple, list)):
            x = x[-1]
    return x


def views(rng):
    for _ in range(800):
        chain = [varied(rng, step) for step in rng.choices(VIEWS, k=rng.randint(1, 4))]
        shape = rng.choice([(2, 3), (2, 3, 4), (3,), (1, 2, 1), (0, 3), ()])
        dtype = rng.choice(["float32", "int64", "complex64"])
        names = [name for name, *_ in chain]
        arranged = any(name in ARRANGED for name in names)
        arranged |= dtype == "complex64" and ("conj",) in chain  # memory of its own

        def show(t, chain=chain, shape=shape, dtype=dtype, arranged=arranged):
            x = shown(t, made(t, shape, dtype), chain)
            stride = [s for s, size in zip(x.stride(), x.shape, strict=True) if size != 1]
            return x, stride if x.numel() and not arranged else None

        def write(t, chain=chain, shape=shape):
            x = made(t, shape, "float32").requires_grad_()
            y = x * 1
            z = shown(t, y, [step for step in chain[:2] if step[0] != "view_as_real"])
            z.mul_(3)
            ((y * y).sum() + z.sum()).backward()
            return x.grad

        elsewhere = arranged and "as_strided" in names  # which sees how they lie
        # Conjugates have memory of their own, so that it can be shown.
        elsewhere |= {"conj", "view_as_real"} <= set(names) and dtype == "complex64"
        yield f"{dtype} {shape} {chain}", show, elsewhere
        # torch repeats no elements less than no times, but has no gradient of that.
        fewer = any(
            name in ("repeat", "tile") and min(given, default=0) < 0 for name, *given in chain
        )
        yield f"write {shape} {chain[:2]}", write, elsewhere or fewer or "unfold" in names


AREAS = {"promotion": promotion, "reductions": reductions, "indexing": indexing, "views": views}
warnings.simplefilter("ignore")
counts, differ = dict.fromkeys(AREAS, 0), []
for seed, (area, drawn) in itertools.product(sys.argv[1:], AREAS.items()):
    for said, call, known in drawn(random.Random(f"{seed} {area}")):
        counts[area] += 1
        if not known and not same(outcome(call, torch), outcome(call, tp)):
            differ.append(f"{area} (seed {seed}): {said}")
sys.stdout.write("\n" + json.dumps([counts, differ]) + "\n")
