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
