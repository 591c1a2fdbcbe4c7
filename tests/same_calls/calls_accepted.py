"""Calls that torch takes and that once raised, or gave no gradient."""

# ruff: noqa: PERF403, PLC3002  as tables they are easier to read

import io

import numpy as np

A = {}


def d(name):
    def reg(f):
        A[name] = f
        return f

    return reg


def F(t):
    return t.nn.functional


def shp(r):
    return (
        [shp(q) for q in r]
        if isinstance(r, (tuple, list))
        else str(tuple(r.shape))
        if r is not None
        else "None"
    )


Z = {
    "MHA": lambda t: t.nn.MultiheadAttention(4, 2, batch_first=True)(*[t.ones(0, 3, 4)] * 3),
    "encoder layer": lambda t: t.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)(
        t.ones(0, 3, 4)
    ),
    "decoder layer": lambda t: t.nn.TransformerDecoderLayer(4, 2, 8, batch_first=True)(
        t.ones(0, 3, 4), t.ones(0, 3, 4)
    ),
    "transformer": lambda t: t.nn.Transformer(4, 2, 1, 1, 8, batch_first=True)(
        t.ones(0, 3, 4), t.ones(0, 3, 4)
    ),
    "encoder eval": lambda t: t.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()(
        t.ones(0, 3, 4)
    ),
    "RNN": lambda t: t.nn.RNN(3, 4)(t.ones(2, 0, 3)),
    "LSTM": lambda t: t.nn.LSTM(3, 4)(t.ones(2, 0, 3)),
    "GRU": lambda t: t.nn.GRU(3, 4)(t.ones(2, 0, 3)),
    "grid_sample": lambda t: F(t).grid_sample(t.ones(0, 2, 3, 3), t.ones(0, 2, 2, 2)),
    "AdaptiveMaxPool2d": lambda t: t.nn.AdaptiveMaxPool2d(2)(t.ones(0, 2, 4, 4)),
    "AdaptiveMaxPool1d": lambda t: t.nn.AdaptiveMaxPool1d(2)(t.ones(0, 2, 4)),
    "AdaptiveMaxPool3d": lambda t: t.nn.AdaptiveMaxPool3d(2)(t.ones(0, 2, 4, 4, 4)),
    "AdaptiveAvgPool2d": lambda t: t.nn.AdaptiveAvgPool2d(2)(t.ones(0, 2, 4, 4)),
    "MaxUnpool2d": lambda t: t.nn.MaxUnpool2d(2)(
        t.ones(0, 2, 2, 2), t.ones(0, 2, 2, 2, dtype=t.int64)
    ),
    "MaxUnpool1d": lambda t: t.nn.MaxUnpool1d(2)(t.ones(0, 2, 2), t.ones(0, 2, 2, dtype=t.int64)),
    "BatchNorm2d": lambda t: t.nn.BatchNorm2d(2)(t.ones(0, 2, 3, 3)),
    "BatchNorm eval": lambda t: t.nn.BatchNorm2d(2).eval()(t.ones(0, 2, 3, 3)),
    "GroupNorm": lambda t: t.nn.GroupNorm(1, 2)(t.ones(0, 2, 3)),
    "LayerNorm": lambda t: t.nn.LayerNorm(2)(t.ones(0, 2)),
    "InstanceNorm": lambda t: t.nn.InstanceNorm2d(2)(t.ones(0, 2, 3, 3)),
    "cross_entropy empty": lambda t: F(t).cross_entropy(t.ones(0, 3), t.ones(0, dtype=t.int64)),
    "cross_entropy 0 classes": lambda t: F(t).cross_entropy(
        t.ones(0, 0), t.ones(0, dtype=t.int64), reduction="none"
    ),
    "conv2d": lambda t: F(t).conv2d(t.ones(0, 2, 5, 5), t.ones(3, 2, 3, 3)),
    "convT": lambda t: F(t).conv_transpose2d(t.ones(0, 2, 5, 5), t.ones(2, 3, 3, 3)),
    "linear": lambda t: F(t).linear(t.ones(0, 3), t.ones(2, 3)),
    "bilinear": lambda t: F(t).bilinear(t.ones(0, 2), t.ones(0, 3), t.ones(4, 2, 3)),
    "pixel_shuffle": lambda t: F(t).pixel_shuffle(t.ones(0, 4, 2, 2), 2),
    "embedding": lambda t: F(t).embedding(t.ones(0, dtype=t.int64), t.ones(3, 2)),
    "embedding_bag": lambda t: F(t).embedding_bag(t.ones(0, 3, dtype=t.int64), t.ones(3, 2)),
    "unfold": lambda t: F(t).unfold(t.ones(0, 2, 4, 4), 2),
    "interpolate": lambda t: F(t).interpolate(t.ones(0, 2, 4, 4), scale_factor=2),
    "max_pool": lambda t: F(t).max_pool2d(t.ones(0, 2, 4, 4), 2),
    "avg_pool": lambda t: F(t).avg_pool2d(t.ones(0, 2, 4, 4), 2),
    "lp_pool": lambda t: F(t).lp_pool2d(t.ones(0, 2, 4, 4), 2, 2),
    "fractional": lambda t: F(t).fractional_max_pool2d(t.ones(0, 2, 4, 4), 2, output_size=2),
    "fractional3": lambda t: F(t).fractional_max_pool3d(t.ones(0, 2, 4, 4, 4), 2, output_size=2),
    "LRN": lambda t: t.nn.LocalResponseNorm(2)(t.ones(0, 4, 3)),
    "PReLU": lambda t: t.nn.PReLU(2)(t.ones(0, 2)),
    "sdpa": lambda t: F(t).scaled_dot_product_attention(*[t.ones(0, 1, 3, 4)] * 3),
    "fold": lambda t: F(t).fold(t.ones(0, 8, 9), (4, 4), 2),
    "BatchNorm1d": lambda t: t.nn.BatchNorm1d(2)(t.ones(0, 2)),
    "pad reflect": lambda t: F(t).pad(t.ones(0, 2, 4), (1, 1), mode="reflect"),
    "nll_loss2d": lambda t: F(t).nll_loss(t.ones(0, 3, 2, 2), t.ones(0, 2, 2, dtype=t.int64)),
    "ctc": lambda t: F(t).ctc_loss(
        t.ones(3, 0, 4),
        t.ones(0, 2, dtype=t.int64),
        t.ones(0, dtype=t.int64),
        t.ones(0, dtype=t.int64),
    ),
    "mse": lambda t: F(t).mse_loss(t.ones(0, 2), t.ones(0, 2)),
    "rnn cell": lambda t: t.nn.LSTMCell(2, 3)(t.ones(0, 2)),
    "channel_shuffle": lambda t: F(t).channel_shuffle(t.ones(0, 4, 2, 2), 2),
    "cdist": lambda t: t.cdist(t.ones(0, 2, 3), t.ones(0, 4, 3)),
    "affine_grid": lambda t: F(t).affine_grid(t.ones(0, 2, 3), (0, 1, 2, 2)),
    "glu": lambda t: F(t).glu(t.ones(0, 4)),
    "multi_margin": lambda t: F(t).multi_margin_loss(t.ones(0, 3), t.ones(0, dtype=t.int64)),
    "multilabel_margin": lambda t: F(t).multilabel_margin_loss(
        t.ones(0, 3), t.ones(0, 3, dtype=t.int64)
    ),
    "cosine emb": lambda t: F(t).cosine_embedding_loss(t.ones(0, 3), t.ones(0, 3), t.ones(0)),
    "triplet": lambda t: F(t).triplet_margin_loss(*[t.ones(0, 3)] * 3),
    "gumbel": lambda t: F(t).gumbel_softmax(t.ones(0, 3)),
}
for n, f in Z.items():
    A["empty batch " + n] = lambda t, f=f: shp(f(t))


def u8(t, *s):
    return (t.arange(int(np.prod(s))) * 37 % 256).reshape(*s).to(t.uint8)


for mode in ("bilinear", "bicubic"):
    for kw in (
        {"size": (3, 5)},
        {"size": (9, 7)},
        {"size": (3, 5), "antialias": True},
        {"size": (5, 11), "align_corners": True},
        {"scale_factor": 2},
    ):
        A[f"u8 {mode} {kw}"] = lambda t, mode=mode, kw=kw: F(t).interpolate(
            u8(t, 1, 3, 6, 8), mode=mode, **kw
        )
for n, a in (
    ("arange", (4,)),
    ("linspace", (0, 3, 4)),
    ("zeros", (4,)),
    ("ones", (4,)),
    ("full", ((4,), 7)),
    ("eye", (2,)),
    ("logspace", (0, 2, 3)),
    ("randperm", (3,)),
):
    for dt in ("int32", "float64", "float16"):
        A[f"factory out {n} {dt}"] = lambda t, n=n, a=a, dt=dt: (
            lambda r: (
                str(r.dtype).rpartition(".")[2] + str(tuple(r.shape)) if n == "randperm" else r
            )
        )(getattr(t, n)(*a, out=t.empty(0, dtype=getattr(t, dt))))
A["random_ None"] = lambda t: bool((t.empty(5, dtype=t.int64).random_(5, None) >= 5).all())


@d("no_grad class")
def _(t):
    @t.no_grad()
    class C:
        def __init__(self, x):
            self.y = x * 2

    return C(t.ones(1, requires_grad=True)).y.requires_grad


@d("Function defaults")
def _(t):
    class G(t.autograd.Function):
        @staticmethod
        def forward(x, k=3):
            return x * k

        @staticmethod
        def setup_context(ctx, i, o):
            ctx.n = len(i)
            ctx.k = i[1]

        @staticmethod
        def backward(ctx, g):
            return (g * ctx.k,) + (None,) * (ctx.n - 1)

    x = t.ones(1, requires_grad=True)
    y = G.apply(x)
    y.backward()
    return y, x.grad


@d("Function non-tensor results")
def _(t):
    class G(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, "a", None, 5

        @staticmethod
        def backward(ctx, g, *r):
            return g * 2

    x = t.ones(1, requires_grad=True)
    y = G.apply(x)
    y[0].backward()
    return y, x.grad


@d("detect_anomaly")
def _(t):
    with t.autograd.detect_anomaly(check_nan=False):
        x = t.zeros(1, requires_grad=True)
        (x.sqrt() * 0).backward()
        return x.grad


@d("AccumulateGrad hooks")
def _(t):
    x = t.ones(2, requires_grad=True)
    n = (x * 2).grad_fn.next_functions[0][0]
    seen = []
    n.register_hook(lambda *a: seen.append("post"))
    n.register_prehook(lambda g: seen.append("pre"))
    (x * 2).sum().backward()
    return seen, type(n).__name__


@d("prehook several outputs")
def _(t):
    x = t.ones(4, requires_grad=True)
    a, b = x.split(2)
    seen = []
    a.grad_fn.register_prehook(
        lambda g: (seen.append(len(g)), tuple(None if q is None else q * 2 for q in g))[1]
    )
    (a.sum() + b.sum() * 3).backward()
    return seen, x.grad


@d("prehook one of several outputs used")
def _(t):
    x = t.ones(4, requires_grad=True)
    a, _b = x.split(2)
    seen = []
    a.grad_fn.register_prehook(lambda g: seen.append([q is None for q in g]))
    a.sum().backward()
    return seen, x.grad


@d("prehook unbind sort max")
def _(t):
    x = t.tensor([[1.0, 4], [3, 2]], requires_grad=True)
    seen = []
    for r in (
        x.sort(0),
        x.max(0),
        x.topk(1, 0),
        t.linalg.slogdet(x),
        t.linalg.qr(x),
        t.std_mean(x),
    ):
        found = []
        r[0].grad_fn.register_prehook(lambda g, found=found: found.append(len(g)))
        r[0].sum().backward()
        seen.append(found)
    return seen


@d("inference views")
def _(t):
    b = t.ones(3)
    with t.inference_mode():
        v = b[:2]
        w = t.ones(2)
        u = w[:1]
    out = [v.is_inference(), w.is_inference(), u.is_inference()]
    v.add_(1)
    out.append(b.tolist())
    for f in (
        lambda: w.add_(1),
        lambda: (w * t.ones(2, requires_grad=True)).sum().backward(),
        lambda: w.view(-1).is_inference(),
        lambda: w.requires_grad_(),
        lambda: w.clone().is_inference(),
    ):
        try:
            r = f()
            out.append(r if isinstance(r, bool) else "ok")
        except Exception as e:
            out.append(type(e).__name__)
    return out


@d("param.set_")
def _(t):
    p = t.nn.Parameter(t.ones(2))
    with t.no_grad():
        p.set_(t.zeros(3))
    return p


@d("checkpoint autocast bf16")
def _(t):
    m = t.nn.Linear(2, 2)
    with t.no_grad():
        m.weight.fill_(0.5)
        m.bias.fill_(0)
    x = t.ones(1, 2, requires_grad=True)
    with t.autocast("cpu", t.bfloat16):
        y = t.utils.checkpoint.checkpoint(m, x, use_reentrant=False)
    y.float().sum().backward()
    return y, x.grad


@d("gradcheck closure")
def _(t):
    w = t.ones(2, dtype=t.float64, requires_grad=True)
    return t.autograd.gradcheck(lambda x: x * w, (t.ones(2, dtype=t.float64, requires_grad=True),))


@d("ChainedScheduler")
def _(t):
    o = t.optim.SGD([t.nn.Parameter(t.ones(1))], lr=0.1)
    s = t.optim.lr_scheduler.ChainedScheduler(
        [t.optim.lr_scheduler.ConstantLR(o), t.optim.lr_scheduler.ExponentialLR(o, 0.9)]
    )
    o.step()
    s.step()
    return s.last_epoch, s.get_last_lr()


@d("CyclicLR momentum")
def _(t):
    o = t.optim.SGD([t.nn.Parameter(t.ones(1))], lr=0.1, momentum=0.9)
    s = t.optim.lr_scheduler.CyclicLR(o, 0.1, 1.0, 4)
    r = [o.param_groups[0]["momentum"]]
    for _ in range(5):
        o.step()
        s.step()
        r += [o.param_groups[0]["momentum"], o.param_groups[0]["lr"]]
    return r


@d("CyclicLR adam")
def _(t):
    o = t.optim.Adam([t.nn.Parameter(t.ones(1))], lr=0.1)
    s = t.optim.lr_scheduler.CyclicLR(o, 0.1, 1.0, 4)
    r = [str(o.param_groups[0]["betas"])]
    for _ in range(3):
        o.step()
        s.step()
        r += [list(o.param_groups[0]["betas"])]
    return r


@d("LBFGS -inf")
def _(t):
    p = t.nn.Parameter(t.ones(1))
    o = t.optim.LBFGS([p], tolerance_grad=-float("inf"), max_iter=3)

    def c():
        o.zero_grad()
        seen = (p - 3).square().sum()
        seen.backward()
        return seen

    o.step(c)
    return p


A["lazy norm no affine"] = lambda t: (
    lambda m: (m(t.ones(2, 3, 4)), m.num_features, len(list(m.parameters())))
)(t.nn.LazyBatchNorm1d(affine=False, track_running_stats=False))
A["lazy instance norm"] = lambda t: (lambda m: (m(t.ones(2, 3, 4)), m.num_features))(
    t.nn.LazyInstanceNorm1d(affine=False)
)


@d("loader after exception")
def _(t):
    class D(t.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            if i == 1:
                raise ValueError("x")
            return i

    it = iter(t.utils.data.DataLoader(D()))
    r = []
    for _ in range(5):
        try:
            r.append(int(next(it)))
        except ValueError:
            r.append("V")
        except StopIteration:
            r.append("S")
    return r


@d("load unseekable")
def _(t):
    b = io.BytesIO()
    t.save(t.ones(2), b)

    class R:
        def __init__(self, d):
            self.f = io.BytesIO(d)

        def read(self, *a):
            return self.f.read(*a)

        def readline(self):
            return self.f.readline()

    return t.load(R(b.getvalue()))


A["65 dims"] = lambda t: t.ones([1] * 65).ndim
A["cat empty"] = lambda t: t.cat([t.empty(0), t.empty(0)], 1)
A["cat empty 2"] = lambda t: t.cat([t.empty(0), t.ones(2, 3)], 1)
A["add bools"] = lambda t: t.add(True, True)
for n, f in {
    "addcmul": lambda t: t.addcmul(t.ones(2), 2, t.ones(2), t.ones(2)),
    "addcdiv": lambda t: t.addcdiv(t.ones(2), 2, t.ones(2), t.ones(2)),
    "addmm": lambda t: t.addmm(2, t.ones(2, 2), 3, t.ones(2, 2), t.ones(2, 2)),
    "addmm2": lambda t: t.addmm(t.ones(2, 2), 3, t.ones(2, 2), t.ones(2, 2)),
    "add": lambda t: t.add(t.ones(2), 2, t.ones(2)),
    "sub": lambda t: t.sub(t.ones(2), 2, t.ones(2)),
    "add_": lambda t: t.ones(2).add_(2, t.ones(2)),
    "addmv": lambda t: t.addmv(t.ones(2), 2, t.ones(2, 2), t.ones(2)),
    "addcmul_": lambda t: t.ones(2).addcmul_(2, t.ones(2), t.ones(2)),
    "sum axis": lambda t: t.ones(2, 2).sum(axis=0),
    "norm": lambda t: t.ones(2, 2).norm(2, 0),
    "baddbmm": lambda t: t.baddbmm(2, t.ones(1, 2, 2), t.ones(1, 2, 2), t.ones(1, 2, 2)),
}.items():
    A["deprecated " + n] = f
A["names"] = lambda t: [
    hasattr(t, "GradScaler"),
    hasattr(t.quasirandom, "SobolEngine"),
    hasattr(t.nn.grad, "conv2d_weight"),
    hasattr(t, "_foreach_add_"),
    hasattr(t.autograd.graph, "GradientEdge"),
    hasattr(t.autograd.graph, "allow_mutation_on_saved_tensors"),
    hasattr(t.autograd.graph, "get_gradient_edge"),
]
A["foreach"] = lambda t: (
    t._foreach_add([t.ones(2), t.ones(3)], 2.0),
    t._foreach_mul([t.ones(2)], [t.ones(2) * 3]),
    t._foreach_norm([t.ones(2)]),
)


@d("gradient edge")
def _(t):
    x = t.ones(2, requires_grad=True)
    y = x * 2
    z = (y * 3).sum()
    return t.autograd.grad(z, [t.autograd.graph.get_gradient_edge(y)])


@d("mutation on saved")
def _(t):
    with t.autograd.graph.allow_mutation_on_saved_tensors():
        x = t.ones(2, requires_grad=True)
        y = x.clone()
        z = (y * y).sum()
        y.sin_()
        z.backward()
    return x.grad


for op, args in {
    "div_": (),
    "pow_": (),
    "xlogy_": (),
    "float_power_": (),
    "ldexp_": (),
    "mul_": (),
    "add_": (),
    "sub_": (),
    "atan2_": (),
    "fmod_": (),
    "remainder_": (),
    "copysign_": (),
    "hypot_": (),
    "addcmul_": 2,
    "addcdiv_": 2,
    "lerp_": "lerp",
    "nextafter_": (),
    "masked_fill_": "m",
    "index_add_": "i",
    "floor_divide_": (),
    "true_divide_": (),
    "logaddexp": (),
}.items():

    def f(t, op=op, args=args):
        a = t.tensor([2.0, 3], dtype=t.float64)
        b = leaf(t)
        if args == 2:
            getattr(a, op)(b, t.ones(2, dtype=t.float64) * 2)
        elif args == "lerp":
            getattr(a, op)(t.ones(2, dtype=t.float64), b)
        elif args == "m":
            a.masked_fill_(t.tensor([True, False]), b[0])
        elif args == "i":
            a.index_add_(0, t.tensor([1]), b[:1])
        else:
            getattr(a, op)(b)
        if a.grad_fn is None:
            return "no grad"
        a.sum().backward()
        return a, b.grad

    A["other requires grad " + op] = f


def leaf(t):
    return t.tensor([1.5, 2.5], dtype=t.float64, requires_grad=True)


TWICE = {
    "view": lambda t, x: x.view(2, 1),
    "t": lambda t, x: x.unsqueeze(0).t(),
    "add": lambda t, x: x + x,
    "add1": lambda t, x: x + 1,
    "sub": lambda t, x: x - 1,
    "sum": lambda t, x: x.sum(),
    "cat": lambda t, x: t.cat([x, x]),
    "clone": lambda t, x: x.clone(),
    "expand": lambda t, x: x.expand(3, 2),
    "index": lambda t, x: x[0],
    "neg": lambda t, x: -x,
    "mean": lambda t, x: x.mean(),
    "stack": lambda t, x: t.stack([x, x]),
    "to": lambda t, x: x.float(),
    "permute": lambda t, x: x.unsqueeze(0).permute(1, 0),
    "select": lambda t, x: x.select(0, 1),
    "flip": lambda t, x: x.flip(0),
    "roll": lambda t, x: x.roll(1),
    "mulc": lambda t, x: x * 2,
    "cumsum": lambda t, x: x.cumsum(0),
    "diag": lambda t, x: x.diag(),
    "tril": lambda t, x: x.expand(2, 2).tril(),
    "repeat": lambda t, x: x.repeat(2),
    "pad": lambda t, x: F(t).pad(x, (1, 1)),
    "unbind": lambda t, x: x.unbind()[0],
    "contiguous": lambda t, x: x.expand(2, 2).contiguous(),
    "split": lambda t, x: x.split(1)[0],
    "real": lambda t, x: t.complex(x, x).real,
    "exp": lambda t, x: x.exp(),
    "mul": lambda t, x: x * x,
    "sin": lambda t, x: x.sin(),
    "trace": lambda t, x: x.expand(2, 2).trace(),
    "unfold": lambda t, x: x.unfold(0, 1, 1),
}
for n, f in TWICE.items():

    def g(t, f=f):
        x = leaf(t)
        y = f(t, x).sum()
        y.backward()
        y.backward()
        return x.grad

    A["twice " + n] = g
for n, f in {
    "hardtanh": lambda t, x: F(t).hardtanh(x),
    "relu6": lambda t, x: F(t).relu6(x),
    "logaddexp": lambda t, x: t.logaddexp(x, x),
    "relu": lambda t, x: x.relu(),
    "exp": lambda t, x: x.exp(),
    "sigmoid": lambda t, x: x.sigmoid(),
    "softmax": lambda t, x: x.softmax(0),
    "abs": lambda t, x: x.abs(),
    "clamp": lambda t, x: x.clamp(0, 2),
    "leaky": lambda t, x: F(t).leaky_relu(x),
    "mul": lambda t, x: x * x,
    "elu": lambda t, x: F(t).elu(x),
    "gelu": lambda t, x: F(t).gelu(x),
    "softplus": lambda t, x: F(t).softplus(x),
    "sum": lambda t, x: x.sum(),
    "mean": lambda t, x: x.mean(),
    "hardsigmoid": lambda t, x: F(t).hardsigmoid(x),
    "hardswish": lambda t, x: F(t).hardswish(x),
    "silu": lambda t, x: F(t).silu(x),
    "logsumexp": lambda t, x: x.logsumexp(0),
    "cumprod": lambda t, x: x.cumprod(0),
    "prod": lambda t, x: x.prod(),
    "norm": lambda t, x: x.norm(),
    "celu": lambda t, x: F(t).celu(x),
    "selu": lambda t, x: F(t).selu(x),
    "threshold": lambda t, x: F(t).threshold(x, 1, 0),
    "logsigmoid": lambda t, x: F(t).logsigmoid(x),
    "dropout": lambda t, x: F(t).dropout(x, 0.0),
    "maximum": lambda t, x: t.maximum(x, x * 0),
    "sqrt": lambda t, x: x.sqrt(),
    "tanh": lambda t, x: x.tanh(),
    "rsqrt": lambda t, x: x.rsqrt(),
    "pow": lambda t, x: x**2,
    "lerp": lambda t, x: t.lerp(x, x * 2, 0.5),
    "where": lambda t, x: t.where(x > 2, x, x * 0),
    "max": lambda t, x: x.max(),
    "amax": lambda t, x: x.amax(),
    "log": lambda t, x: x.log(),
    "square": lambda t, x: x.square(),
}.items():

    def g(t, f=f):
        x = leaf(t)
        y = f(t, x)
        y.mul_(2)
        y.sum().backward()
        return x.grad

    A["write after " + n] = g


@d("dlpack bf16")
def _(t):
    x = t.tensor([1.0, 2.5], dtype=t.bfloat16)
    return t.from_dlpack(x), t.utils.dlpack.from_dlpack(t.utils.dlpack.to_dlpack(x))


for n, f in {
    "bool cumsum_": lambda t: t.tensor([True, True]).cumsum_(0),
    "bool cumprod_": lambda t: t.tensor([True, False]).cumprod_(0),
    "einsum bool": lambda t: t.einsum("i,i", t.ones(0, dtype=t.bool), t.ones(0, dtype=t.bool)),
    "softmax bool empty": lambda t: t.ones(0, dtype=t.bool).softmax(0, dtype=t.float32),
    "softmax bool empty2": lambda t: t.ones(0, dtype=t.bool).softmax(0),
    "median empty": lambda t: t.ones(0).median(),
    "take_along_dim neg": lambda t: t.take_along_dim(t.arange(3.0), t.tensor([-1]), 0),
    "cos 0d": lambda t: F(t).cosine_similarity(t.tensor(2.0), t.tensor(3.0), dim=0),
    "alpha_dropout": lambda t: F(t).alpha_dropout(t.tensor(2.0), 0.0, True),
    "vander empty": lambda t: t.vander(t.ones(0)),
    "vander n0": lambda t: t.vander(t.arange(3), 0),
    "GaussianNLL": lambda t: F(t).gaussian_nll_loss(t.ones(2, 3), t.zeros(2, 3), t.ones(2)),
    "GaussianNLL1": lambda t: F(t).gaussian_nll_loss(t.ones(2, 3), t.zeros(2, 3), t.ones(2, 1)),
    "GaussianNLL0": lambda t: F(t).gaussian_nll_loss(t.ones(2, 3), t.zeros(2, 3), 1.0),
    "gradient spacing None": lambda t: t.gradient(t.arange(4.0) ** 2, spacing=None),
    "ormqr wide": lambda t: t.ormqr(
        t.eye(3, 2, dtype=t.float64), t.ones(2, dtype=t.float64), t.ones(3, 4, dtype=t.float64)
    ),
    "ormqr empty": lambda t: t.ormqr(t.ones(0, 0), t.ones(0), t.ones(0, 2)),
    "complex silu": lambda t: F(t).silu(t.tensor([1 + 1j])),
    "vmap bce": lambda t: t.vmap(F(t).binary_cross_entropy)(t.full((2, 3), 0.3), t.ones(2, 3)),
    "vmap one_hot": lambda t: t.vmap(lambda x: F(t).one_hot(x, 3))(t.tensor([0, 2])),
    "vmap bincount": lambda t: t.vmap(lambda x: t.bincount(x, minlength=3))(
        t.tensor([[0, 2], [1, 1]])
    ),
    "split kw": lambda t: t.ones(4).split(split_size=2),
    "dropout2d 2d": lambda t: F(t).dropout2d(t.ones(2, 2), 0.0),
    "list index": lambda t: [1, 2, 3][t.tensor([1])],
    "gather float empty": lambda t: t.ones(2).gather(0, t.ones(0)),
    "scatter float empty": lambda t: t.ones(2).scatter(0, t.ones(0), t.ones(0)),
    "normalize out": lambda t: F(t).normalize(t.ones(2), dim=0, out=t.empty(2)),
    "as_strided_": lambda t: t.arange(6.0).as_strided_((2,), (2,)),
    "cumsum out": lambda t: t.cumsum(t.ones(3), 0, out=t.empty(3)),
    "addmm out": lambda t: t.addmm(t.ones(2, 2), t.ones(2, 2), t.ones(2, 2), out=t.empty(2, 2)),
    "arange out": lambda t: t.arange(3, out=t.empty(3)),
    "sum axis": lambda t: t.sum(t.ones(2, 2), axis=1),
    "tensor_split indices": lambda t: t.tensor_split(t.arange(6), indices=(1, 3)),
    "tensor_split sections": lambda t: t.tensor_split(t.arange(6), sections=3),
    "masked": lambda t: sorted([n for n in t.masked.__all__ if "masked" not in n.lower()]),
    "copies": lambda t: [
        t.expand_copy(t.ones(1), (2,)),
        t.alias_copy(t.ones(1)),
        t.view_copy(t.ones(2), (2, 1)),
        t.permute_copy(t.ones(2, 1), (1, 0)),
        t.t_copy(t.ones(2, 1)),
        t.select_copy(t.ones(2), 0, 0),
        t.slice_copy(t.ones(3), 0, 1),
        t.split_copy(t.ones(2), 1),
        t.unbind_copy(t.ones(2)),
        t.squeeze_copy(t.ones(1)),
        t.unsqueeze_copy(t.ones(1), 0),
        t.transpose_copy(t.ones(1, 2), 0, 1),
        t.diagonal_copy(t.ones(2, 2)),
        t.detach_copy(t.ones(1)),
        t.as_strided_copy(t.ones(4), (2,), (1,)),
        t.unfold_copy(t.ones(4), 0, 2, 2),
        t.view_as_real_copy(t.ones(1, dtype=t.complex64)),
        t.narrow_copy(t.ones(3), 0, 0, 1),
    ],
    "bilinear u8": lambda t: F(t).interpolate(u8(t, 1, 1, 3, 3), size=(5, 5), mode="bilinear"),
}.items():
    A[n] = f
for n, f in {
    "frexp": lambda t, x: t.frexp(x)[0],
    "nextafter": lambda t, x: t.nextafter(x, x * 2),
    "matrix_power": lambda t, x: t.linalg.matrix_power(x.expand(2, 2) * 1, 0),
    "householder": lambda t, x: t.linalg.householder_product(x.unsqueeze(1), x[:1]),
    "normal": lambda t, x: t.normal(x, 1.0),
    "normal2": lambda t, x: t.normal(0.0, x),
    "normal3": lambda t, x: t.normal(x, x),
    "bernoulli": lambda t, x: t.bernoulli(x / 4),
    "bernoulli m": lambda t, x: (x / 4).bernoulli(),
    "bernoulli p": lambda t, x: t.bernoulli(x, 0.3),
    "fill": lambda t, x: t.fill(x, 2.0),
    "fill t": lambda t, x: t.fill(x, x[0]),
    "poisson": lambda t, x: t.poisson(x),
    "round": lambda t, x: x.round(),
    "sign": lambda t, x: x.sign(),
    "floor": lambda t, x: x.floor(),
    "ceil": lambda t, x: x.ceil(),
    "trunc": lambda t, x: x.trunc(),
    "heaviside": lambda t, x: t.heaviside(x, x),
    "zeros_like": lambda t, x: t.zeros_like(x),
    "rand_like": lambda t, x: t.rand_like(x),
    "floor_divide": lambda t, x: x // 2,
    "normal_": lambda t, x: (x * 1).normal_(),
    "uniform_": lambda t, x: (x * 1).uniform_(),
    "bernoulli_": lambda t, x: (x * 1).bernoulli_(0.5),
    "exponential_": lambda t, x: (x * 1).exponential_(),
    "random_": lambda t, x: (x * 1).random_(),
    "cauchy_": lambda t, x: (x * 1).cauchy_(),
    "log_normal_": lambda t, x: (x * 1).log_normal_(),
    "geometric_": lambda t, x: (x * 1).geometric_(0.5),
    "zero_": lambda t, x: (x * 1).zero_(),
    "fill_": lambda t, x: (x * 1).fill_(1),
    "copysign": lambda t, x: t.copysign(t.ones(2, dtype=t.float64), x),
    "dropout1": lambda t, x: F(t).dropout(x, 1.0),
    "nan_to_num": lambda t, x: x.nan_to_num(),
    "rrelu": lambda t, x: F(t).rrelu(x),
    "multinomial": lambda t, x: t.multinomial(x, 1),
    "special.zeta": lambda t, x: t.special.zeta(2.0, x) if 0 else x,
    "logical_not": lambda t, x: x.logical_not(),
    "digamma": lambda t, x: x.digamma(),
    "isclose": lambda t, x: t.isclose(x, x),
    "count_nonzero": lambda t, x: x.count_nonzero(),
    "as_tensor": lambda t, x: t.as_tensor(x),
    "empty_like": lambda t, x: t.empty_like(x),
    "histc": lambda t, x: t.histc(x),
    "bucketize": lambda t, x: t.bucketize(x, t.ones(1, dtype=t.float64)),
    "igamma": lambda t, x: t.igamma(x.detach(), x),
    "polygamma": lambda t, x: t.polygamma(1, x),
    "rad2deg": lambda t, x: x.rad2deg(),
    "mode": lambda t, x: x.mode()[0],
    "sgn": lambda t, x: x.sgn(),
    "fmod": lambda t, x: x.fmod(2),
    "rem": lambda t, x: x.remainder(2),
    "one": lambda t, x: x.ne(1),
    "unique": lambda t, x: t.unique(x),
}.items():

    def g(t, f=f):
        t.manual_seed(0)
        x = leaf(t)
        y = f(t, x)
        out = [y.requires_grad, y.grad_fn is None]
        if y.requires_grad:
            y.sum().backward()
            out.append(x.grad if x.grad is not None else "none")
        return out

    A["graph " + n] = g
