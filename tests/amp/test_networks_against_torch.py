"""Networks under autocast, in float16 and bfloat16, backward where programs have it, beside torch.

A loss and all gradients have torch's dtypes, and are as near to those of float32 as torch's are. The backward
pass runs inside of the block, after it, after a scaler, through a checkpoint, twice, in a functional
transform, and of a compiled module.
"""

import os
import random
import warnings

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch is the reference of these tests")

SEEDS = max(2, int(os.environ.get("TENSORPLUG_FUZZ", "0")) // 250)
PLACES = {"float16": 2e-2, "bfloat16": 8e-2}


def module(t, parts, forward):
    """Return a module of some parts with a forward pass."""

    class Network(t.nn.Module):
        def __init__(self):
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

        def forward(self, x):
            return forward(self, x)

    return Network()


def one(t, part, forward):
    return module(t, {"part": part}, lambda self, x: forward(self.part, x))


#: Networks, and the shapes of their inputs.
NETWORKS = {
    "dense": (lambda t, n: n.Sequential(n.Linear(6, 8), n.GELU(), n.LayerNorm(8), n.Linear(8, 3)), (4, 6)),
    "rms": (lambda t, n: n.Sequential(n.Linear(6, 8), n.RMSNorm(8), n.Softplus(), n.Linear(8, 3)), (4, 6)),
    "prelu": (
        lambda t, n: n.Sequential(n.Linear(6, 8), n.PReLU(8), n.Linear(8, 3), n.LogSoftmax(-1)), (4, 6)
    ),
    "convolution": (
        lambda t, n: n.Sequential(
            n.Conv2d(2, 4, 3, padding=1, bias=False), n.BatchNorm2d(4), n.SiLU(), n.MaxPool2d(2),
            n.Conv2d(4, 3, 3),
        ),
        (2, 2, 8, 8),
    ),
    "transposed": (
        lambda t, n: n.Sequential(n.ConvTranspose2d(2, 4, 3), n.GroupNorm(2, 4), n.Tanh(), n.AvgPool2d(2)),
        (2, 2, 6, 6),
    ),
    "volumes": (
        lambda t, n: n.Sequential(n.Conv3d(1, 2, 2), n.ELU(), n.Flatten(), n.Linear(16, 2)), (2, 1, 3, 3, 3)
    ),
    "upsampling": (
        lambda t, n: n.Sequential(
            n.Conv2d(2, 3, 1), n.Upsample(scale_factor=2), n.PixelUnshuffle(2), n.Conv2d(12, 2, 1)
        ),
        (1, 2, 4, 4),
    ),
    "encoder": (
        lambda t, n: n.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (2, 5, 8)
    ),
    "decoder": (
        lambda t, n: one(
            t, n.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True), lambda m, x: m(x, x[:, :3])
        ),
        (2, 5, 8),
    ),
    "attention": (
        lambda t, n: one(t, n.MultiheadAttention(8, 2, batch_first=True), lambda m, x: m(x, x, x)[0]),
        (2, 5, 8),
    ),
    "recurrent": (lambda t, n: one(t, n.GRU(4, 5, batch_first=True), lambda m, x: m(x)[0]), (2, 3, 4)),
    "bilinear": (lambda t, n: one(t, n.Bilinear(4, 4, 3), lambda m, x: m(x, x)), (5, 4)),
}  # fmt: skip
LOSSES = {
    "sum": lambda t, y: y.sum(),
    "mse_loss": lambda t, y: t.nn.functional.mse_loss(y, t.zeros_like(y)),
    "smooth_l1_loss": lambda t, y: t.nn.functional.smooth_l1_loss(y, t.ones_like(y)),
    "cross_entropy": lambda t, y: t.nn.functional.cross_entropy(
        y.flatten(1), t.zeros(len(y), dtype=t.int64)
    ),
    "norm": lambda t, y: y.norm(),
    "pow": lambda t, y: (y**2).mean(),
    "logsumexp": lambda t, y: t.logsumexp(y.flatten(), 0),
}
WAYS = (
    "inside",
    "after",
    "loss outside",
    "scaled",
    "checkpoint",
    "twice",
    "functional",
    "compiled",
)


def run(t, name, loss, dtype, way, state, array):
    """Return the loss and the gradients of all parameters and of the input."""
    model = NETWORKS[name][0](t, t.nn)
    model.load_state_dict({key: t.tensor(value) for key, value in state.items()})
    x = t.tensor(array).requires_grad_()
    parameters = dict(model.named_parameters())

    def block():
        return t.autocast("cpu", getattr(t, dtype or "bfloat16"), enabled=dtype is not None)

    def computed(call=model):
        return LOSSES[loss](t, call(x))

    if way == "functional":

        def of(values):
            with block():
                return computed(lambda x: t.func.functional_call(model, values, (x,))).float()

        plain = {key: value.detach() for key, value in parameters.items()}
        return [of(plain), *t.func.grad(of)(plain).values()]
    if way == "loss outside":
        with block():
            hidden = model(x)
        value = LOSSES[loss](t, hidden.float())
        value.backward()
    elif way == "scaled":
        with block():
            value = computed()
        t.amp.GradScaler("cpu", init_scale=4.0).scale(value / 4).backward()
    else:
        call = t.compile(model) if way == "compiled" and t is tp else model
        with block():
            if way == "checkpoint":
                value = computed(
                    lambda x: t.utils.checkpoint.checkpoint(model, x, use_reentrant=False)
                )
            else:
                value = computed(call)
            if way == "twice":
                first = t.autograd.grad(
                    value, list(parameters.values()), create_graph=True, allow_unused=True
                )
                sum((g.float() ** 2).sum() for g in first if g is not None).backward()
            elif way != "after":
                value.backward()
        if way == "after":
            value.backward()
    return [value, *[p.grad for p in parameters.values()], x.grad]


def plain(found):
    return [
        None if v is None else (str(v.dtype).rpartition(".")[2], v.detach().float().numpy())
        for v in found
    ]


def check(name, seed):
    """Return what is wrong, or that torch cannot do it."""
    source = random.Random(f"autocast {name} {seed}")
    make, shape = NETWORKS[name]
    torch.manual_seed(seed)
    state = {key: v.numpy().copy() for key, v in make(torch, torch.nn).state_dict().items()}
    array = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    loss, dtype, way = (
        source.choice(sorted(LOSSES)),
        source.choice(sorted(PLACES)),
        source.choice(WAYS),
    )
    said = f"{name}, {loss}, {dtype}, {way}, seed {seed}"
    try:
        theirs = plain(run(torch, name, loss, dtype, way, state, array))
        exact = plain(run(torch, name, loss, None, way, state, array))
    except RuntimeError:  # no second derivative, or no kernel of such a dtype
        return None
    ours = plain(run(tp, name, loss, dtype, way, state, array))
    for number, (a, b, c) in enumerate(zip(ours, theirs, exact, strict=True)):
        if (a is None) is not (b is None):
            return f"gradient {number}: {a is None}, torch {b is None}: {said}"
        if a is None:
            continue
        if a[0] != b[0] or a[1].shape != b[1].shape:
            return f"{number} is {a[0]} {a[1].shape}, torch's {b[0]} {b[1].shape}: {said}"
        size = max(np.abs(c[1]).max(initial=0), 1e-2)
        mine, other = (np.abs(v[1] - c[1]).max(initial=0) / size for v in (a, b))
        if not mine <= 3 * other + PLACES[dtype]:
            return f"{number} is off by {mine}, torch's by {other}: {said}"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_of_networks(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [check(name, seed) for seed in range(SEEDS * 2)]
    assert not any(found), "\n".join(filter(None, found))
    assert found.count("") >= SEEDS
