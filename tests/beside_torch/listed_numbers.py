"""NumPy's arrays and scalars, numbers out of range, precision, caches, dtypes, distributions, files."""

# ruff: noqa: E501  as tables they are easier to read

import contextlib
import io
import math
import tempfile
from pathlib import Path

import numpy as np
from listed_rows import Row

ROWS = {}


def F(t):
    return t.nn.functional


# --- arrays of NumPy beside tensors ---

ARRAY = np.array([1.0, 5.0, 2.0])


def three(t):
    return t.tensor([1.0, 2.0, 4.0], dtype=t.float64)


def added(t):
    x = three(t)
    x += ARRAY
    return x


ROWS |= {
    "x == array": Row(lambda t: three(t) == ARRAY, [True, False, False]),
    "x + array": Row(lambda t: three(t) + ARRAY, [2, 7, 6]),
    "x - array": Row(lambda t: three(t) - ARRAY, [0, -3, 2]),
    "x * array": Row(lambda t: three(t) * ARRAY, [1, 10, 8]),
    "x / array": Row(lambda t: three(t) / ARRAY, [1, 0.4, 2]),
    "x ** array": Row(lambda t: three(t) ** ARRAY, [1, 32, 16]),
    "x @ array": Row(lambda t: three(t) @ ARRAY, 19),
    "x += array": Row(added, [2, 7, 6]),
    "np.sqrt(x)": Row(lambda t: np.sqrt(three(t)), [1, math.sqrt(2), 2]),
    "np.sin(x)": Row(lambda t: np.sin(three(t)), [math.sin(1), math.sin(2), math.sin(4)]),
    "np.exp(x)": Row(lambda t: np.exp(three(t)), [math.exp(1), math.exp(2), math.exp(4)]),
    "np.abs(x)": Row(lambda t: np.abs(-three(t)), [1, 2, 4]),
    "np.isnan(x)": Row(lambda t: np.isnan(three(t)), [False, False, False]),
    "np.add(x, x)": Row(lambda t: np.add(three(t), three(t)), [2, 4, 8]),
    "np.add(x, array)": Row(lambda t: np.add(three(t), ARRAY), [2, 7, 6]),
    "array * x": Row(lambda t: ARRAY * three(t), [1, 10, 8], "operators of an array and a tensor"),
}

# --- scalars of NumPy, in each place that takes a number ---

NUMBERS = {
    "add": (lambda t, x, n: t.add(x, n), lambda v, n: v + n),
    "add(alpha=)": (lambda t, x, n: t.add(x, x, alpha=n), lambda v, n: v + n * v),
    "sub": (lambda t, x, n: t.sub(x, n), lambda v, n: v - n),
    "rsub": (lambda t, x, n: n - x, lambda v, n: n - v),
    "mul": (lambda t, x, n: t.mul(x, n), lambda v, n: v * n),
    "rmul": (lambda t, x, n: n * x, lambda v, n: v * n),
    "div": (lambda t, x, n: t.div(x, n), lambda v, n: v / n),
    "pow": (lambda t, x, n: t.pow(x, n), lambda v, n: v**n),
    "rpow": (lambda t, x, n: t.pow(n, x), lambda v, n: n**v),
    "float_power": (lambda t, x, n: t.float_power(x, n), lambda v, n: v**n),
    "remainder": (lambda t, x, n: t.remainder(x, n), lambda v, n: v % n),
    "fmod": (lambda t, x, n: t.fmod(x, n), math.fmod),
    "clamp": (lambda t, x, n: t.clamp(x, max=n), min),
    "fill_": (lambda t, x, n: x.clone().fill_(n), lambda v, n: n),
    "where": (lambda t, x, n: t.where(x > 2, x, n), lambda v, n: v if v > 2 else n),
    "lerp": (lambda t, x, n: t.lerp(x, x + 1, n), lambda v, n: v + n),
    "eq": (lambda t, x, n: t.eq(x, n), lambda v, n: v == n),
    "ge": (lambda t, x, n: t.ge(x, n), lambda v, n: v >= n),
    "masked_fill": (lambda t, x, n: x.masked_fill(x > 2, n), lambda v, n: n if v > 2 else v),
    "addcmul(value=)": (lambda t, x, n: t.addcmul(x, x, x, value=n), lambda v, n: v + n * v * v),
    "full": (lambda t, x, n: t.full((3,), n, dtype=t.float64), lambda v, n: n),
    "index_fill": (lambda t, x, n: x.index_fill(0, t.arange(3), n), lambda v, n: n),
    "scatter": (lambda t, x, n: x.scatter(0, t.arange(3), n), lambda v, n: n),
    "xlogy": (lambda t, x, n: t.xlogy(x, n), lambda v, n: v * math.log(n)),
    "threshold": (lambda t, x, n: F(t).threshold(x, n, 0.0), lambda v, n: v if v > n else 0),
    "leaky_relu": (lambda t, x, n: F(t).leaky_relu(-x, n), lambda v, n: -v * n),
}
SPELLINGS = {kind.__name__: kind(2) for kind in (np.int64, np.int8, np.float32, np.float64)}


def of_numbers(name, number):
    call, expected = NUMBERS[name]
    return Row(
        lambda t: call(t, three(t), number), [expected(v, float(number)) for v in (1.0, 2.0, 4.0)]
    )


ROWS |= {f"{name}({kind}(2))": of_numbers(name, number) for name in NUMBERS
    for kind, number in SPELLINGS.items()}  # fmt: skip
COUNTS = {
    "roll": (lambda t, n: t.arange(4).roll(n), [2, 3, 0, 1]),
    "sum": (lambda t, n: t.ones(2, 2, 2).sum(n - 1), [[2, 2], [2, 2]]),
    "narrow": (lambda t, n: t.arange(4).narrow(0, n, n), [2, 3]),
    "reshape": (lambda t, n: t.arange(4).reshape(n, n), [[0, 1], [2, 3]]),
    "zeros": (lambda t, n: t.zeros(n), [0, 0]),
    "select": (lambda t, n: t.arange(4).select(0, n), 2),
    "topk": (lambda t, n: t.arange(4).topk(n)[0], [3, 2]),
    "repeat": (lambda t, n: t.arange(1).repeat(n), [0, 0]),
    "unsqueeze": (lambda t, n: t.arange(2).unsqueeze(n - 2), [[0, 1]]),
    "chunk": (lambda t, n: t.arange(4).chunk(n), ([0, 1], [2, 3])),
    "x[n]": (lambda t, n: t.arange(4)[n], 2),
    "softmax": (lambda t, n: t.zeros(1, 1, 2).softmax(n), [[[0.5, 0.5]]]),
}
ROWS |= {f"{name}(np.int64(2))": Row(lambda t, f=f: f(t, np.int64(2)), expected)
    for name, (f, expected) in COUNTS.items()}  # fmt: skip
ROWS |= {
    "split(np.int64(2))": Row(lambda t: t.arange(4).split(np.int64(2)), ([0, 1], [2, 3]), "`x.split(np.int64(1))`"),
    "dtype of float_power(np.int64(2))": Row(lambda t: str(t.float_power(three(t), np.int64(2)).dtype)[-7:], "float64"),
}  # fmt: skip

# --- numbers that a dtype does not hold ---

PLACES = {
    "clamp(max)": lambda t, x, n: x.clamp(max=n),
    "clamp(min)": lambda t, x, n: x.clamp(min=n),
    "x[0] =": lambda t, x, n: (x.__setitem__(0, n), x)[1],
    "fill_": lambda t, x, n: x.fill_(n),
    "masked_fill": lambda t, x, n: x.masked_fill(x > 0, n),
    "where": lambda t, x, n: t.where(x > 0, x, n),
    "scatter": lambda t, x, n: x.scatter(0, t.tensor([0]), n),
    "index_fill": lambda t, x, n: x.index_fill(0, t.tensor([0]), n),
    "add(alpha=)": lambda t, x, n: t.add(x, x, alpha=n),
    "linspace": lambda t, x, n: t.linspace(0, n, 3, dtype=x.dtype),
    "full": lambda t, x, n: t.full((2,), n, dtype=x.dtype),
    "tensor": lambda t, x, n: t.tensor([n], dtype=x.dtype),
}
BEYOND = (
    ("uint8", 300), ("uint8", -1), ("int8", -200), ("int8", 200), ("int64", math.nan), ("int64", math.inf),
    ("int64", 1e300), ("float16", -1e9), ("float16", 70000.0), ("bfloat16", 1e39), ("float32", 1e300),
    ("float32", 1j), ("int64", 2 + 0j), ("uint8", 2.7),
)  # fmt: skip
ROWS |= {
    f"{place} of {number} in {dtype}": Row(
        lambda t, f=f, d=dtype, n=number: f(t, t.tensor([1, 0], dtype=getattr(t, d)), n)
    )
    for place, f in PLACES.items()
    for dtype, number in BEYOND
}
ROWS |= {
    "uint8.clamp(max=300)": Row(lambda t: t.tensor([1, 255], dtype=t.uint8).clamp(max=300), RuntimeError),
    "int8.clamp(-200, 200)": Row(lambda t: t.tensor([-128, 127], dtype=t.int8).clamp(-200, 200), RuntimeError),
    "masked_fill of -1e9 in float16": Row(
        lambda t: t.ones(2, dtype=t.float16).masked_fill(t.tensor([True, False]), -1e9), RuntimeError
    ),
    "pad of 300 in uint8": Row(
        lambda t: F(t).pad(t.ones(1, dtype=t.uint8), (1, 0), value=300), RuntimeError
    ),
    "pad of inf in int64": Row(lambda t: F(t).pad(t.ones(1, dtype=t.int64), (1, 0), value=math.inf), RuntimeError),
}  # fmt: skip

# --- precision ---


def attention(dtype):
    """Return attention with a query for all heads, and its gradient, as distances from single precision."""

    def call(t):
        q = (t.arange(64.0).reshape(1, 1, 8, 8) * 0.7).sin()
        k = (t.arange(512.0).reshape(2, 4, 8, 8) * 0.3).cos()

        def both(dtype):
            given = [x.to(dtype).requires_grad_() for x in (q, k)]
            query, key = given
            out = F(t).scaled_dot_product_attention(query.expand(2, 4, 8, 8), key, key)
            out.float().square().sum().backward()
            return [out.float(), *[x.grad.float() for x in given]]

        rate = 4 * t.finfo(dtype(t)).eps
        pairs = zip(both(dtype(t)), both(t.float32), strict=True)
        return [bool((a - b).norm() < rate * b.norm()) for a, b in pairs]

    return Row(call, [True] * 3)


ROWS |= {
    "round(7000, decimals=2) in float16": Row(
        lambda t: t.tensor([7000.0, 1.256], dtype=t.float16).round(decimals=2), [7000, 1.26]
    ),
    "round(7777, decimals=-2) in float16": Row(
        lambda t: t.tensor([7777.0], dtype=t.float16).round(decimals=-2), [7800]
    ),
    "layer_norm of constant rows": Row(
        lambda t: F(t).layer_norm(t.full((2, 1000), 1234.567), (1000,)).abs().amax(1), [0, 0]
    ),
    "lgamma of subnormals": Row(
        lambda t: t.tensor([1e-310, 5e-324], dtype=t.float64).lgamma(),
        [math.lgamma(1e-310), math.lgamma(5e-324)],
    ),
    "attention in float16": attention(lambda t: t.float16),
    "attention in bfloat16": attention(lambda t: t.bfloat16),
}

# --- caches of calls ---


def second_after(first, second):
    def call(t):
        with contextlib.suppress(Exception):
            first(t)
        return second(t)

    return call


def signed_zeros(t):
    x, mask = t.zeros(1, dtype=t.complex128), t.tensor([True])
    filled = [x.masked_fill(mask, number) for number in (complex(-1, 0.0), complex(-1, -0.0))]
    return [math.copysign(1.0, z.imag.item()) for z in filled]


ROWS |= {
    "masked_fill of -1+0j, then of -1-0j": Row(signed_zeros, [1.0, -1.0]),
    "roll by (1.0, 1), then by (1, 1)": Row(
        second_after(
            lambda t: t.arange(4).reshape(2, 2).roll((1.0, 1), (0, 1)),
            lambda t: t.arange(4).reshape(2, 2).roll((1, 1), (0, 1)),
        ),
        [[3, 2], [1, 0]],
    ),
    "roll by (0, 1), then by (0.0, 1)": Row(
        second_after(
            lambda t: t.arange(4).reshape(2, 2).roll((0, 1), (0, 1)),
            lambda t: t.arange(4).reshape(2, 2).roll((0.0, 1), (0, 1)),
        ),
        TypeError,
    ),
}

# --- dtypes and shapes ---

ROWS |= {
    "diff(n=0, prepend=)": Row(lambda t: t.arange(3).diff(n=0, prepend=t.tensor([9])), [0, 1, 2]),
    "avg_pool1d of int64": Row(lambda t: F(t).avg_pool1d(t.arange(8).reshape(1, 1, 8), 2)),
    "avg_pool2d of int64": Row(lambda t: F(t).avg_pool2d(t.arange(16).reshape(1, 1, 4, 4), 2)),
    "hardtanh of int64": Row(lambda t: F(t).hardtanh(t.tensor([-3, 0, 3])), [-1, 0, 1]),
    "threshold of int64": Row(lambda t: F(t).threshold(t.tensor([-3, 0, 3]), 0, 7), [7, 7, 3]),
    "bool.add(True, alpha=2)": Row(lambda t: t.tensor([True, False]).add(True, alpha=2)),
    "cov(bfloat16, aweights=float32)": Row(
        lambda t: t.cov(t.ones(2, 3, dtype=t.bfloat16), aweights=t.ones(3)), [[0, 0], [0, 0]]
    ),
    "sum_to_size of a bool": Row(lambda t: t.tensor(True).sum_to_size(()), True),
    "normalize of ints": Row(lambda t: F(t).normalize(t.tensor([[3, 4]]))),
    "circular pad of mixed signs": Row(
        lambda t: F(t).pad(t.arange(4.0).reshape(1, 1, 4), (-1, 2), mode="circular"),
        [[[1, 2, 3, 1, 2]]],
    ),
    "vander of int8": Row(lambda t: t.linalg.vander(t.tensor([3], dtype=t.int8), N=8)),
    "tensor of one-element tensors": Row(
        lambda t: t.tensor([t.tensor([1]), t.tensor([2])]), [1, 2]
    ),
    "histc(min=max)": Row(lambda t: t.tensor([1.0, 2.0, 3.0]).histc(2, 0, 0), [1, 2]),
    "narrow(0, 0, tensor(3))": Row(lambda t: tuple(t.ones(4, 2).narrow(0, 0, t.tensor(3)).shape)),
    "narrow(0, tensor(1), 2)": Row(lambda t: t.arange(4).narrow(0, t.tensor(1), 2), [1, 2]),
}

# --- distributions, modules, schedulers, gradients, files ---


def slope(function, *values):
    def call(t):
        x = t.tensor(values, dtype=t.float64, requires_grad=True)
        function(t, x).sum().backward()
        return x.grad

    return call


def beta(t):
    drawn = t.distributions.Beta(t.tensor(0.01), t.tensor(0.01)).sample((4000,))
    return bool((drawn == 1).float().mean() < 0.45), bool((drawn < 1).any())


def plain_attribute(t):
    class Scaled(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = t.ones(1)

        def forward(self, x):
            return x * self.scale

    return t.func.functional_call(Scaled(), {"scale": t.tensor([3.0])}, (t.ones(2),))


def parametrized_twice(t):
    class Doubled(t.nn.Module):
        def forward(self, x):
            return 2 * x

        def right_inverse(self, x):
            return x / 2

    linear = t.nn.Linear(2, 1, bias=False)
    t.nn.init.constant_(linear.weight, 8.0)
    for _ in range(2):
        t.nn.utils.parametrize.register_parametrization(linear, "weight", Doubled())
    return linear.parametrizations.weight.original.detach(), linear.weight.detach()


def spectral(norm):
    """Return the largest singular value of a complex weight that is divided by it."""

    def call(t):
        t.manual_seed(0)
        linear = norm(t)(t.nn.Linear(3, 2, dtype=t.complex64), n_power_iterations=50)
        linear(t.ones(1, 3, dtype=t.complex64))
        return t.linalg.svdvals(linear.weight.detach()).max()

    return call


def resumed(t):
    optimizer = t.optim.SGD([{"params": [t.ones(1)], "lr": 0.1, "initial_lr": 0.1}])
    schedule = t.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10, last_epoch=5)
    return schedule.get_last_lr()[0]


def drawn_into(make):
    def call(t):
        t.manual_seed(3)
        plain = make(t)(5)
        t.manual_seed(3)
        return t.equal(plain, make(t)(5, out=t.empty(5)))

    return Row(call, True)


def two_files(t):
    file = io.BytesIO()
    for number in (1.0, 2.0):
        t.save(t.tensor([number]), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    return [t.load(file) for _ in range(2)]


def open_file(t):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved"
        with path.open("wb") as file:
            t.save(t.tensor([1.0, 2.0]), file)
            return t.load(path)


def attributes(t):
    x = t.ones(1)
    x.note = "kept"
    file = io.BytesIO()
    t.save(x, file)
    file.seek(0)
    return t.load(file, weights_only=False).note


ROWS |= {
    "gradient of Binomial(10, logits=0).log_prob(0)": Row(
        slope(lambda t, x: t.distributions.Binomial(10, logits=x).log_prob(t.zeros(1, dtype=t.float64)), 0.0), [-5]
    ),
    "Beta(.01, .01).sample()": Row(beta, (True, True)),
    "functional_call of a plain attribute": Row(plain_attribute, [3, 3]),
    "a second parametrization with right_inverse": Row(parametrized_twice),
    "parametrizations.spectral_norm of complex": Row(
        spectral(lambda t: t.nn.utils.parametrizations.spectral_norm), 1.0
    ),
    "spectral_norm of complex": Row(
        spectral(lambda t: t.nn.utils.spectral_norm), 1.0, "`nn.utils.spectral_norm` of complex weights"
    ),
    "CosineAnnealingLR(last_epoch=5)": Row(resumed),
    "gradient near inf": Row(
        lambda t: t.gradient(t.tensor([1.0, 2.0, math.inf, 4.0]))[0]
    ),
    "gradient of sinc at 1e-200": Row(
        slope(lambda t, x: t.sinc(x), 1e-200), [0]
    ),
    "randn(out=)": drawn_into(lambda t: t.randn),
    "rand(out=)": drawn_into(lambda t: t.rand),
    "two legacy files in one buffer": Row(two_files, ([1], [2])),
    "save to an open file": Row(open_file, [1, 2]),
    "attributes of a saved tensor": Row(attributes, "kept"),
}  # fmt: skip
