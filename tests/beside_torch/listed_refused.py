"""Calls that once went through and that torch refuses."""

from listed_rows import Row

ROWS = {}


def F(t):
    return t.nn.functional


def refuses(name, call, kind=RuntimeError, deviation=""):
    ROWS[name] = Row(call, kind, deviation)


refuses(
    "embedding_bag, offsets past the input",
    lambda t: F(t).embedding_bag(t.tensor([0, 1]), t.ones(3, 2), t.tensor([0, 3])),
)
for value in (-0.1, 1.1, float("nan")):
    refuses(
        f"binary_cross_entropy of a target of {value}",
        lambda t, v=value: F(t).binary_cross_entropy(t.tensor([0.5]), t.tensor([v])),
    )
refuses("add(int, int, alpha=1.0)", lambda t: t.add(t.tensor([1]), t.tensor([1]), alpha=1.0))
refuses("add(float, float, alpha=1j)", lambda t: t.add(t.ones(1), t.ones(1), alpha=1j))
refuses(
    "add(bool, bool, alpha=1.0)", lambda t: t.add(t.tensor([True]), t.tensor([True]), alpha=1.0)
)
for name, call in {
    "bool - bool": lambda t: t.tensor([True]) - t.tensor([False]),
    "bool - True": lambda t: t.tensor([True]) - True,
    "True - bool": lambda t: True - t.tensor([True]),
    "-bool": lambda t: -t.tensor([True]),
    "sub_(bool)": lambda t: t.tensor([True]).sub_(t.tensor([True])),
    "int - bool": lambda t: t.tensor([1]) - t.tensor([True]),
}.items():
    refuses(name, call)
for start in (True, 1.0):
    refuses(f"narrow from {start}", lambda t, s=start: t.arange(4).narrow(0, s, 2), TypeError)
for start in ("True", "1.0"):
    refuses(
        f"narrow from tensor({start})",
        lambda t, s=start: t.arange(4).narrow(0, t.tensor(eval(s)), 2),
    )
OUT = {
    "any": ("float32", lambda t, x, out: t.any(x, 0, out=out)),
    "all": ("float32", lambda t, x, out: t.all(x, 0, out=out)),
    "argmax": ("float32", lambda t, x, out: t.argmax(x, 0, out=out)),
    "argmin": ("int32", lambda t, x, out: t.argmin(x, 0, out=out)),
    "nonzero": ("int32", lambda t, x, out: t.nonzero(x, out=out)),
    "searchsorted": ("int32", lambda t, x, out: t.searchsorted(x, x, out=out)),
    "bucketize": ("float32", lambda t, x, out: t.bucketize(x, x, out=out)),
    "isposinf": ("float32", lambda t, x, out: t.isposinf(x, out=out)),
    "isneginf": ("int64", lambda t, x, out: t.isneginf(x, out=out)),
    "signbit": ("float32", lambda t, x, out: t.signbit(x, out=out)),
    "multinomial": ("int32", lambda t, x, out: t.multinomial(x, 1, out=out)),
}
for name, (dtype, call) in OUT.items():
    refuses(
        f"{name}(out={dtype})",
        lambda t, f=call, d=dtype: f(t, t.tensor([1.0, 2.0]), t.empty(0, dtype=getattr(t, d))),
    )
refuses("HuberLoss(delta=1j)", lambda t: t.nn.HuberLoss(delta=1j)(t.ones(1), t.zeros(1)), TypeError)
refuses("huber_loss(delta=0)", lambda t: F(t).huber_loss(t.ones(1), t.zeros(1), delta=0.0))
refuses(
    "CrossEntropyLoss(ignore_index=) of probabilities",
    lambda t: t.nn.CrossEntropyLoss(ignore_index=1)(t.ones(1, 3), t.ones(1, 3) / 3),
)
for kind in ("RNN", "LSTM", "GRU"):
    refuses(f"{kind}(bias=1)", lambda t, k=kind: getattr(t.nn, k)(2, 2, bias=1), TypeError)
COMPARED = {"eq": [False, True], "ne": [True, False], "lt": [False, False], "le": [False, True],
    "gt": [True, False], "ge": [True, True]}  # fmt: skip
for name, expected in COMPARED.items():
    ROWS[f"{name}(2, x)"] = Row(
        lambda t, n=name: getattr(t, n)(2, t.tensor([1, 2])),
        expected,
        "of a number first (`eq(2, x)`)",
    )
for name, call in {
    **{
        f"{n} without sizes": lambda t, n=n: getattr(t.ones(()), n)()
        for n in ("expand", "view", "tile", "permute", "reshape")
    },
    "dims twice": lambda t: t.ones(2).flip([0], dims=[0]),
    "sum(dim={})": lambda t: t.ones(2).sum({}),
    "tensor_split(True)": lambda t: t.tensor_split(t.ones(2), True),
    "roll(b'a')": lambda t: t.roll(t.ones(2), b"a"),
    "eigh(UPLO=1)": lambda t: t.linalg.eigh(t.eye(2), UPLO=1),
    "svd(driver=1)": lambda t: t.linalg.svd(t.eye(2), driver=1),
    "fft(norm=1)": lambda t: t.fft.fft(t.ones(2), norm=1),
    "div(rounding_mode=1)": lambda t: t.div(t.ones(2), 2, rounding_mode=1),
    "dropout(training=None)": lambda t: F(t).dropout(t.ones(2), training=None),
    "group_norm(eps=None)": lambda t: F(t).group_norm(t.ones(1, 2), 1, eps=None),
    "zeros(layout=1)": lambda t: t.zeros(2, layout=1),
    "arange(5, start=2)": lambda t: t.arange(5, start=2),
    "arange(1, 3, 1, step=1)": lambda t: t.arange(1, 3, 1, step=1),
    "range(3)": lambda t: t.range(3),
    "pad(1)": lambda t: F(t).pad(t.ones(2), 1),
    "scatter of src and value": lambda t: t.scatter(
        t.ones(2), 0, t.tensor([0]), t.ones(1), value=1
    ),
    "matrix_rank(atol={})": lambda t: t.linalg.matrix_rank(t.eye(2), atol={}),
    "einsum of a number": lambda t: t.einsum("i,", t.ones(2), 1),
    "map_ of ints": lambda t: t.ones(2).map_(t.tensor([1, 2]), max),
    "ones(2, size=3)": lambda t: t.ones(2, size=(3,)),
    "leaky_relu(tensor)": lambda t: F(t).leaky_relu(t.ones(3), "a"),
}.items():
    refuses(name, call, TypeError)
for name, call in {
    "index_add of a number to a row": lambda t: t.index_add(t.ones(2), 0, t.tensor(0), t.ones(())),
    "tensorinv of a number": lambda t: t.linalg.tensorinv(t.tensor(2.0), ind=1),
    "Generator.manual_seed(1.5)": lambda t: t.Generator().manual_seed(1.5),
    "Generator.manual_seed(True)": lambda t: t.Generator().manual_seed(True),
    "histogram(range=(2.0,))": lambda t: t.histogram(t.ones(2), 3, range=(2.0,)),
    "multi_margin_loss(weight=) of one": lambda t: F(t).multi_margin_loss(
        t.ones(2, 3), t.tensor([0, 1]), weight=t.ones(1)
    ),
    "ldl_solve(floats)": lambda t: t.linalg.ldl_solve(t.eye(2), t.ones(2), t.ones(2, 1)),
    "slice_scatter(step=-1)": lambda t: t.slice_scatter(t.ones(2), t.ones(2), step=-1),
    "isin(True)": lambda t: t.isin(t.ones(2), True),
}.items():
    refuses(name, call)
for seed in (1 << 64, -(1 << 63) - 1):
    refuses(f"manual_seed({seed})", lambda t, s=seed: t.manual_seed(s), ValueError)
refuses(
    "instance_norm of one running statistic",
    lambda t: F(t).instance_norm(t.ones(1, 2, 3), t.ones(2), None),
    ValueError,
)
NORMS = {
    "vector_norm": lambda t, x, dtype: t.linalg.vector_norm(x, dtype=dtype),
    "linalg.norm": lambda t, x, dtype: t.linalg.norm(x, dtype=dtype),
    "linalg.norm(ord=2)": lambda t, x, dtype: t.linalg.norm(x, 2, dtype=dtype),
    "matrix_norm": lambda t, x, dtype: t.linalg.matrix_norm(x, dtype=dtype),
    "matrix_norm(1)": lambda t, x, dtype: t.linalg.matrix_norm(x, 1, dtype=dtype),
    "norm": lambda t, x, dtype: t.norm(x, dtype=dtype),
}
NARROWER = ("float64 float32", "float32 float16", "float16 bfloat16", "float32 complex64",
    "complex128 complex64", "float32 int64")  # fmt: skip
for name, call in NORMS.items():
    for wide, narrow in map(str.split, NARROWER):
        if (name, narrow) == ("norm", "int64"):
            continue
        refuses(
            f"{name}, {wide} {narrow}",
            lambda t, f=call, x=wide, to=narrow: f(
                t, t.ones(2, 2, dtype=getattr(t, x)), getattr(t, to)
            ),
        )
