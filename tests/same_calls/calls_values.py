"""Calls that once gave other values than torch, without a word."""

# ruff: noqa: PERF403, PLC3002  as tables they are easier to read

import io

import numpy as np


def leaf(t, *values, dtype=None):
    return t.tensor(list(values), dtype=dtype or t.float64).requires_grad_()


def retained(write):
    def call(t):
        x = t.ones(2, dtype=t.float64, requires_grad=True)
        y = x * 2
        y.retain_grad()
        write(t, y)
        if y.requires_grad:
            y.sum().backward()
        return y.grad, x.grad

    return call


WRITES = {
    "add_": lambda t, y: y.add_(1),
    "iadd": lambda t, y: y.__iadd__(1),
    "mul_": lambda t, y: y.mul_(3),
    "fill_": lambda t, y: y.fill_(1.0),
    "zero_": lambda t, y: y.zero_(),
    "setitem": lambda t, y: y.__setitem__(0, 5.0),
    "copy_": lambda t, y: y.copy_(t.zeros(2)),
    "exp_": lambda t, y: y.exp_(),
    "sin_": lambda t, y: y.sin_(),
    "clamp_": lambda t, y: y.clamp_(0, 1),
    "relu_": lambda t, y: y.relu_(),
    "masked_fill_": lambda t, y: y.masked_fill_(t.tensor([True, False]), 0),
    "index_fill_": lambda t, y: y.index_fill_(0, t.tensor([0]), 1.0),
    "pow_": lambda t, y: y.pow_(2),
    "div_": lambda t, y: y.div_(2),
    "sub_": lambda t, y: y.sub_(2),
    "addcmul_": lambda t, y: y.addcmul_(t.ones(2, dtype=t.float64), t.ones(2, dtype=t.float64)),
    "lerp_": lambda t, y: y.lerp_(t.ones(2, dtype=t.float64), 0.25),
    "neg_": lambda t, y: y.neg_(),
    "abs_": lambda t, y: y.abs_(),
    "tanh_": lambda t, y: y.tanh_(),
    "sqrt_": lambda t, y: y.sqrt_(),
    "through view": lambda t, y: y[:1].mul_(2),
    "scatter_": lambda t, y: y.scatter_(0, t.tensor([0]), t.ones(1, dtype=t.float64)),
    "cumsum_": lambda t, y: y.cumsum_(0),
    "square_": lambda t, y: y.square_(),
    "index_add_": lambda t, y: y.index_add_(0, t.tensor([1]), t.ones(1, dtype=t.float64)),
}
V = {}
for n, w in WRITES.items():
    V["retain_grad " + n] = retained(w)


def d(name):
    def reg(f):
        V[name] = f
        return f

    return reg


for shape in ((3,), (2, 3), ()):
    V[f"roll is no view {shape}"] = lambda t, s=shape: t.ones(s).roll(1)._is_view()
V["ravel in memory"] = lambda t: (
    t.ones(10)[::2].ravel().stride(),
    t.ones(2, 3).ravel()._is_view(),
)
V["copies in memory"] = lambda t: [
    copy(t, t.ones(2, 3, 2, 2).to(memory_format=t.channels_last)).stride()
    for copy in (
        lambda t, x: t.slice_copy(x, 0, 0, 1),
        lambda t, x: t.select_copy(x, 0, 0),
        lambda t, x: t.permute_copy(x, (0, 2, 3, 1)),
        lambda t, x: t.expand_copy(x, (2, 3, 2, 2)),
        lambda t, x: t.alias_copy(x),
        lambda t, x: t.detach_copy(x),
        lambda t, x: t.unsqueeze_copy(x, 0),
    )
]
V["flip of an int"] = lambda t: t.flip(t.ones(2, 2), 0)
V["as_strided permuted"] = lambda t: (
    t.arange(12.0).reshape(2, 2, 3).permute(2, 0, 1) * 1.0
).as_strided((4,), (1,))


@d("as_strided write")
def _(t):
    x = t.arange(12.0).reshape(2, 2, 3).permute(2, 0, 1) * 1.0
    x.as_strided((4,), (1,)).fill_(9.0)
    return x


for op in ["exp", "neg", "abs", "cumsum0", "sort0", "softmax0", "clone", "flip", "roll1", "relu"]:
    for perm in ((2, 0, 1), (1, 2, 0), (0, 2, 1)):

        def f(t, op=op, perm=perm):
            x = t.arange(12.0).reshape(2, 2, 3).permute(*perm)
            y = getattr(t if hasattr(t, op.rstrip("01")) else x, op.rstrip("01"))(
                x, *([int(op[-1])] if op[-1] in "01" else [(0,)] if op == "flip" else [])
            )
            y = y if not isinstance(y, tuple) else y[0]
            if y.stride() != x.stride() and op in (
                "sort0",
                "softmax0",
                "cumsum0",
                "flip",
                "roll1",
            ):
                pass
            return y.as_strided((4,), (1,)), y.stride()

        V[f"as_strided {op} {perm}"] = f


def gr(t):
    return t.func


V["vmap grad amax"] = lambda t: t.vmap(t.func.grad(lambda x: x.amax()))(t.arange(3.0))
for m in ("max", "min", "amin"):
    V["vmap grad " + m] = lambda t, m=m: t.vmap(t.func.grad(lambda x: getattr(x, m)()))(
        t.arange(3.0)
    )
V["vmap grad aminmax"] = lambda t: t.vmap(t.func.grad(lambda x: x.aminmax()[0]))(t.arange(3.0))
for nd in (1, 2, 3):

    def f(t, nd=nd):
        x = t.arange(3 * 1 * 2 * 4**nd, dtype=t.float64).reshape(3, 1, 2, *[4] * nd).sin()
        w = t.arange(3 * 2 * 2 * 3**nd, dtype=t.float64).reshape(3, 2, 2, *[3] * nd).cos()

        def one(x, w):
            out, back = t.func.vjp(getattr(t.nn.functional, f"conv{nd}d"), x, w)
            return back(t.ones_like(out))

        return t.vmap(one)(x, w)

    V[f"vmap vjp conv{nd}d"] = f
V["jacfwd as_strided"] = lambda t: t.func.jacfwd(lambda x: x.as_strided((2, 2), (1, 1)))(
    t.arange(4.0)
)
V["jacfwd pinv"] = lambda t: t.func.jacfwd(t.linalg.pinv)(
    t.tensor([[1.0, 2], [3, 5], [0.5, 2]], dtype=t.float64)
)
V["vmap grad norm zeros"] = lambda t: t.vmap(t.func.grad(t.norm))(t.zeros(3, 2))
V["vmap grad std zeros"] = lambda t: t.vmap(t.func.grad(t.std))(t.zeros(3, 2))
V["vmap grad dist"] = lambda t: t.vmap(t.func.grad(t.dist))(t.zeros(3, 2), t.zeros(3, 2))
V["vmap grad cdist"] = lambda t: t.vmap(t.func.grad(lambda a, b: t.cdist(a, b).sum()))(
    t.zeros(3, 2, 2), t.zeros(3, 2, 2)
)
V["vmap grad normalize"] = lambda t: t.vmap(
    t.func.grad(lambda x: t.nn.functional.normalize(x, dim=0).sum())
)(t.zeros(3, 2))
V["vmap grad cosine"] = lambda t: t.vmap(
    t.func.grad(lambda x: t.nn.functional.cosine_similarity(x, t.ones(2), dim=0))
)(t.zeros(3, 2))
V["vmap grad norm3"] = lambda t: t.vmap(t.func.grad(lambda x: t.norm(x, 3)))(t.zeros(3, 2))


def sym(t):
    return t.tensor([[2.0, 0.5, 0.1], [0.5, 1, 0.3], [0.1, 0.3, 3]], dtype=t.float64)


def mat(t):
    return t.tensor([[2.0, 0.5, 0.1], [0.7, 1, 0.3], [0.1, 0.9, 3]], dtype=t.float64)


V["jvp eigh abs"] = lambda t: t.func.jvp(
    lambda x: t.linalg.eigh(x)[1].abs(), (sym(t),), (sym(t).sin() + sym(t).sin().T,)
)
V["jvp eig abs"] = lambda t: t.func.jvp(
    lambda x: t.linalg.eig(x)[1].abs().sort(-1)[0], (mat(t),), (sym(t).sin(),)
)
V["jvp svd abs"] = lambda t: t.func.jvp(
    lambda x: t.linalg.svd(x)[0].abs(), (mat(t),), (sym(t).sin(),)
)
for n, f in {
    "svdvals": lambda t: (
        lambda x: t.linalg.svdvals(x).pow(2).mul(t.tensor([1.0, 2, 3], dtype=t.float64)).sum()
    ),
    "nuc": lambda t: lambda x: t.linalg.matrix_norm(x, "nuc"),
    "norm2": lambda t: lambda x: t.linalg.matrix_norm(x, 2),
    "eigvalsh": lambda t: (
        lambda x: t.linalg.eigvalsh(x).pow(2).mul(t.tensor([1.0, 2, 3], dtype=t.float64)).sum()
    ),
}.items():
    V["hessian " + n] = lambda t, f=f, n=n: t.func.hessian(f(t))(
        mat(t) if n != "eigvalsh" else sym(t)
    )


@d("functional.hessian svd solution")
def _(t):
    A = mat(t)
    U, _S, Vh = t.linalg.svd(A)
    c = U @ Vh

    def f(x):
        U, _, Vh = t.linalg.svd(x)
        return ((U @ Vh - c) ** 2).sum()

    return t.autograd.functional.hessian(f, A)


@d("lstsq residuals")
def _(t):
    a = leaf(t, [1.0, 2], [3, 4], [5, 7])
    b = t.tensor([[1.0], [0], [2]], dtype=t.float64)
    t.linalg.lstsq(a, b, driver="gels").residuals.sum().backward()
    return a.grad


@d("index_fill value repeated")
def _(t):
    v = t.tensor(1.0, requires_grad=True)
    t.zeros(3, 2).index_fill(0, t.tensor([0, 0]), v).sum().backward()
    return v.grad


N = np.array([1.0, 2.0])
for n, f in {
    "eq": lambda x: x == N,
    "ne": lambda x: x != N,
    "lt": lambda x: x < N,
    "add": lambda x: x + N,
    "mul": lambda x: x * N,
    "sub": lambda x: x - N,
    "div": lambda x: x / N,
    "pow": lambda x: x**N,
    "matmul": lambda x: x @ N,
    "floordiv": lambda x: x // N,
    "mod": lambda x: x % N,
    "sqrt": lambda x: np.sqrt(x),
    "sin": np.sin,
    "exp": np.exp,
    "abs": np.abs,
    "isnan": np.isnan,
    "npadd": lambda x: np.add(x, N),
    "npadd2": lambda x: np.add(N, x),
    "npmean": np.mean,
    "npsum": lambda x: np.sum(x),
    "concat": lambda x: np.concatenate([x, x]),
    "stack": lambda x: np.stack([x, x]),
    "asarray": np.asarray,
    "array": np.array,
    "where": lambda x: np.where(x > 1, x, x),
    "allclose": lambda x: np.allclose(x, x),
    "max": lambda x: np.max(x),
    "dot": lambda x: np.dot(x, x),
    "nparray32": lambda x: np.asarray(x, dtype=np.float32),
}.items():
    V["ndarray " + n] = lambda t, f=f: f(t.tensor([1.0, 3.0], dtype=t.float64))


@d("ndarray iadd")
def _(t):
    x = t.tensor([1.0, 3.0], dtype=t.float64)
    x += N
    return x


i = np.int64
NP = {
    "add": lambda t, x, q: t.add(x, q(2)),
    "alpha": lambda t, x, q: t.add(x, x, alpha=q(2)),
    "clamp": lambda t, x, q: x.clamp(q(0), q(2)),
    "fill_": lambda t, x, q: x.clone().fill_(q(2)),
    "where": lambda t, x, q: t.where(x > 1, x, q(2)),
    "lerp": lambda t, x, q: t.lerp(x, x * 2, q(2)),
    "eq": lambda t, x, q: t.eq(x, q(2)),
    "masked_fill": lambda t, x, q: x.masked_fill(x > 1, q(2)),
    "div": lambda t, x, q: t.div(x, q(2)),
    "scatter": lambda t, x, q: x.scatter(0, t.tensor([0]), q(2)),
    "float_power": lambda t, x, q: t.float_power(x, q(2)),
    "pow": lambda t, x, q: t.pow(x, q(2)),
    "rpow": lambda t, x, q: q(2) ** x,
    "mul": lambda t, x, q: x * q(2),
    "rmul": lambda t, x, q: q(2) * x,
    "sub": lambda t, x, q: x - q(2),
    "rsub": lambda t, x, q: q(2) - x,
    "full": lambda t, x, q: t.full((2,), q(2)),
    "arange": lambda t, x, q: t.arange(q(4)),
    "linspace": lambda t, x, q: t.linspace(0, q(4), 3),
    "setitem": lambda t, x, q: x.clone().__setitem__(0, q(2)),
    "remainder": lambda t, x, q: t.remainder(x, q(2)),
    "fmod": lambda t, x, q: t.fmod(x, q(2)),
    "addcmul": lambda t, x, q: t.addcmul(x, x, x, value=q(2)),
    "threshold": lambda t, x, q: t.nn.functional.threshold(x, q(1), q(2)),
    "leaky": lambda t, x, q: t.nn.functional.leaky_relu(x, q(2)),
    "maximum": lambda t, x, q: t.maximum(x, q(2)),
    "xlogy": lambda t, x, q: t.xlogy(x, q(2)),
    "tensor": lambda t, x, q: t.tensor(q(2)),
    "index_fill": lambda t, x, q: x.index_fill(0, t.tensor([0]), q(2)),
    "ge": lambda t, x, q: x >= q(2),
}
for n, f in NP.items():
    for q in (np.int64, np.float32, np.float64, np.int8):
        V[f"numpy scalar {n} {q.__name__}"] = lambda t, f=f, q=q: f(t, t.tensor([1.0, 3.0]), q)
for n, f in {
    "roll": lambda t, x: x.roll(i(1), i(0)),
    "sum": lambda t, x: x.sum(i(0)),
    "narrow": lambda t, x: x.narrow(i(0), i(0), i(1)),
    "reshape": lambda t, x: x.reshape(i(2), i(1)),
    "zeros": lambda t, x: t.zeros(i(2), i(1)),
    "select": lambda t, x: x.select(i(0), i(1)),
    "topk": lambda t, x: x.topk(i(1)),
    "repeat": lambda t, x: x.repeat(i(2)),
    "unsqueeze": lambda t, x: x.unsqueeze(i(0)),
    "idx": lambda t, x: x[i(1)],
    "chunk": lambda t, x: x.chunk(i(2)),
    "split": lambda t, x: x.split(i(1)),
    "softmax": lambda t, x: x.softmax(i(0)),
}.items():
    V["numpy int " + n] = lambda t, f=f: f(t, t.tensor([1.0, 3.0]))
RANGE = {
    "clamp": lambda t, x, v: x.clamp(max=v),
    "clamp_": lambda t, x, v: x.clamp_(max=v),
    "clamp2": lambda t, x, v: x.clamp(-200, v),
    "setitem": lambda t, x, v: (x.__setitem__(0, v), x)[1],
    "fill_": lambda t, x, v: x.fill_(v),
    "masked_fill": lambda t, x, v: x.masked_fill(x > 0, v),
    "masked_fill_": lambda t, x, v: x.masked_fill_(x > 0, v),
    "where": lambda t, x, v: t.where(x > 1, x, v),
    "scatter": lambda t, x, v: x.scatter(0, t.tensor([0]), v),
    "index_fill": lambda t, x, v: x.index_fill(0, t.tensor([0]), v),
    "pad": lambda t, x, v: t.nn.functional.pad(x, (1, 1), value=v),
    "alpha": lambda t, x, v: t.add(x, x, alpha=v),
    "add": lambda t, x, v: x + v,
    "mul": lambda t, x, v: x * v,
    "full": lambda t, x, v: t.full((2,), v, dtype=x.dtype),
    "full_like": lambda t, x, v: t.full_like(x, v),
    "new_full": lambda t, x, v: x.new_full((2,), v),
    "tensor": lambda t, x, v: t.tensor(v, dtype=x.dtype),
    "eq": lambda t, x, v: x == v,
    "lt": lambda t, x, v: x < v,
    "linspace": lambda t, x, v: t.linspace(0, v, 3, dtype=x.dtype),
    "arange": lambda t, x, v: t.arange(0, v, 100, dtype=x.dtype) if abs(v) < 1e4 else 0,
    "floordiv": lambda t, x, v: x // v,
    "remainder": lambda t, x, v: x % v,
    "sub_": lambda t, x, v: x.sub_(v),
    "bitand": lambda t, x, v: x & v,
    "threshold": lambda t, x, v: t.nn.functional.threshold(x, 1, v),
    "masked_scatter": lambda t, x, v: x.fill_diagonal_(v) if x.ndim > 1 else 0,
    "new_tensor": lambda t, x, v: x.new_tensor([v]),
    "put": lambda t, x, v: x.index_put((t.tensor([0]),), t.tensor(v)),
    "addcmul": lambda t, x, v: t.addcmul(x, x, x, value=v),
    "constant_pad": lambda t, x, v: t.constant_pad_nd(x, (1, 0), v),
    "nan_to_num": lambda t, x, v: x.nan_to_num(v),
}
for n, f in RANGE.items():
    for dt, v in (
        ("uint8", 300),
        ("int8", -200),
        ("int8", 200),
        ("uint8", -1),
        ("int64", float("nan")),
        ("int64", float("inf")),
        ("int64", 1e300),
        ("float16", -1e9),
        ("float16", 7e4),
        ("float32", 1e300),
        ("float32", 1j),
        ("int32", 2**40),
        ("int16", 40000),
        ("bool", 2),
        ("int64", 2**63),
        ("int64", 2 + 0j),
        ("bfloat16", 1e39),
        ("uint8", 2.7),
    ):
        if isinstance(v, complex) and n in (
            "arange",
            "lt",
            "clamp",
            "clamp_",
            "clamp2",
            "remainder",
            "floordiv",
        ):
            continue
        V[f"range {n} {dt} {v}"] = lambda t, f=f, dt=dt, v=v: f(
            t, t.tensor([1, 2, 3]).to(getattr(t, dt)), v
        )
V["round half"] = lambda t: t.tensor([7000.0, 1.26, -3.14159], dtype=t.float16).round(decimals=1)
V["round half -2"] = lambda t: t.tensor([7000.0, 1260, -3141], dtype=t.float16).round(decimals=-2)
V["layer_norm constant"] = lambda t: (
    t.nn.functional.layer_norm(t.full((2, 768), 1234.567), (768,)).abs().max()
)
V["layer_norm constant 2"] = lambda t: (
    t.nn.functional.layer_norm(t.full((2, 33), 0.1), (33,)).abs().max()
)
V["lgamma subnormal"] = lambda t: t.lgamma(t.tensor([1e-310, 5e-324, -1e-310], dtype=t.float64))
V["lgamma subnormal32"] = lambda t: t.lgamma(t.tensor([1e-40, 1e-44, -1e-40]))


@d("sdpa half broadcast q")
def _(t):
    q = t.arange(8.0).reshape(1, 1, 2, 4).sin().half().requires_grad_()
    k = t.arange(48.0).reshape(2, 1, 6, 4).cos().half()
    o = t.nn.functional.scaled_dot_product_attention(q.expand(2, 1, 2, 4), k, k)
    o.float().sum().backward()
    return o, q.grad


def caches(*calls):
    def call(t):
        out = []
        for c in calls:
            try:
                r = c(t)
                out.append(r if not isinstance(r, (list, tuple)) else list(r))
            except Exception as e:
                out.append(type(e).__name__)
        return out

    return call


V["cache masked_fill signed zero"] = caches(
    *[
        lambda t, v=v: t.view_as_real(
            t.zeros(1, dtype=t.complex128).masked_fill(t.tensor([True]), v)
        ).signbit()
        for v in (-1 + 0j, complex(-1, -0.0), -1 + 0j)
    ]
)
V["cache roll"] = caches(
    *[
        lambda t, s=s: t.arange(6.0).reshape(2, 3).roll(s, (0, 1))
        for s in ((1.0, 1), (1, 1), (0.0, 1), (0, 1), (True, 1))
    ]
)
V["cache pow"] = caches(
    *[lambda t, s=s: t.tensor([1, 2]) ** s for s in (2, 2.0, True, np.int64(2), 2 + 0j)]
)
V["cache mul zero"] = caches(
    *[lambda t, s=s: (t.tensor([1.0]) * s).signbit() for s in (0.0, -0.0, 0, False)]
)
V["cache sum"] = caches(
    *[lambda t, s=s: t.ones(2, 2).sum(s) for s in (0, False, 0.0, (0,), [0], (0, 1), (False,))]
)
V["diff n0"] = lambda t: t.diff(t.arange(3.0), n=0, prepend=t.tensor([0.0]))
for n, f in {
    "avg_pool1d int": lambda t: t.nn.functional.avg_pool1d(t.arange(8).reshape(1, 1, 8), 2),
    "avg_pool2d int": lambda t: t.nn.functional.avg_pool2d(t.arange(16).reshape(1, 1, 4, 4), 2),
    "avg_pool3d int": lambda t: t.nn.functional.avg_pool3d(t.arange(8).reshape(1, 1, 2, 2, 2), 2),
    "hardtanh int": lambda t: t.nn.functional.hardtanh(t.arange(-3, 3)),
    "threshold int": lambda t: t.nn.functional.threshold(t.arange(3), 1, 9),
    "bool add alpha": lambda t: t.tensor([True]).add(True, alpha=2),
    "cov bf16": lambda t: t.cov(
        t.tensor([[1.0, 2, 4], [2, 1, 1]], dtype=t.bfloat16), aweights=t.tensor([0.1, 0.2, 0.3])
    ),
    "sum_to_size bool": lambda t: t.tensor(True).sum_to_size(()),
    "normalize int": lambda t: t.nn.functional.normalize(t.arange(3), dim=0),
    "circular pad mixed": lambda t: t.nn.functional.pad(
        t.arange(6.0).reshape(1, 1, 6), (-1, 2), mode="circular"
    ),
    "circular mixed 2": lambda t: t.nn.functional.pad(
        t.arange(12.0).reshape(1, 1, 3, 4), (2, -1, -1, 1), mode="circular"
    ),
}.items():
    V[n] = f


@d("conj write")
def _(t):
    z = t.ones(2, 2, dtype=t.complex64)
    z.conj()[0, 0] = 5 + 1j
    return z


for n in ("mH", "H"):

    def f(t, n=n):
        z = t.ones(2, 2, dtype=t.complex64)
        getattr(z, n)[0, 1] = 5 + 1j
        return z

    V["conj write " + n] = f


@d("adjoint write")
def _(t):
    z = t.ones(2, 2, dtype=t.complex64)
    z.adjoint()[0, 1] = 5 + 1j
    return z


@d("imag write")
def _(t):
    z = t.ones(2, 2, dtype=t.complex64)
    z.imag[0] = 2
    z.conj().imag.fill_(3)
    z.real.add_(1)
    return z


V["is_conj"] = lambda t: (
    t.ones(1, dtype=t.complex64).conj().is_conj(),
    t.ones(1).conj().is_conj(),
    t.ones(1, dtype=t.complex64).conj().conj().is_conj(),
    t.ones(1, dtype=t.complex64).conj().imag.is_neg(),
    t.ones(1, dtype=t.complex64).conj().resolve_conj().is_conj(),
    t.ones(1, dtype=t.complex64).conj().clone().is_conj(),
    t.ones(1, dtype=t.complex64).conj().is_contiguous(),
)


@d("view under no_grad")
def _(t):
    b = t.ones(3, requires_grad=True)
    with t.no_grad():
        v = b[:2]
    return v.requires_grad, v.is_leaf


@d("view before base requires grad")
def _(t):
    b = t.ones(3)
    v = b[:2]
    b.requires_grad_()
    c = b[:1]
    out = [v.requires_grad, c.requires_grad]
    b2 = t.ones(3)
    v2 = b2[:2]
    t.ones(2, requires_grad=True)
    b2.mul_(t.ones(3, requires_grad=True))
    return [*out, v2.requires_grad]


# torch's own
for n, a in (
    ("arange", (4,)),
    ("linspace", (0, 3, 4)),
    ("logspace", (0, 3, 4)),
    ("randperm", (4,)),
    ("zeros", (4,)),
    ("ones", (4,)),
    ("full", ((4,), 7.0)),
    ("eye", (4,)),
):

    def f(t, n=n, a=a):
        b = t.full((8,), 9.0) if n != "eye" else t.full((4, 8), 9.0)
        getattr(t, n)(*a, out=b[::2] if n != "eye" else b[:, ::2])
        return b if n != "randperm" else b[1::2]

    V["out view " + n] = f
for mode in ("reflect", "replicate", "circular", "constant"):
    for p in ((0, 0), (-1, 0), (-1, -1), (-1, 2)):

        def f(t, mode=mode, p=p):
            x = t.arange(6.0).reshape(1, 1, 6)
            y = t.nn.functional.pad(x, p, mode=mode)
            y.fill_(7)
            return x, y

        V[f"pad alias {mode} {p}"] = f


@d("Binomial grad")
def _(t):
    logits = t.tensor(0.0, requires_grad=True)
    t.distributions.Binomial(10, logits=logits).log_prob(t.tensor(0.0)).backward()
    return logits.grad


V["Beta sample"] = lambda t: (
    lambda s: bool((s == 1).float().mean() < 0.1 or (s == 1).float().mean() > 1)
)(
    t.distributions.Beta(t.tensor(0.01, dtype=t.float64), t.tensor(0.01, dtype=t.float64)).sample(
        (1000,)
    )
)


@d("functional_call plain attr")
def _(t):
    class M(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = t.ones(2)
            self.p = t.nn.Parameter(t.ones(2))

        def forward(self, x):
            return x * self.w + self.p

    return t.func.functional_call(M(), {"w": t.full((2,), 3.0), "p": t.zeros(2)}, (t.ones(2),))


@d("second parametrization")
def _(t):
    class P(t.nn.Module):
        def __init__(self, k):
            super().__init__()
            self.k = k

        def forward(self, x):
            return x * self.k

        def right_inverse(self, x):
            return x / self.k

    m = t.nn.Linear(2, 2, bias=False)
    with t.no_grad():
        m.weight.copy_(t.eye(2))
    t.nn.utils.parametrize.register_parametrization(m, "weight", P(2))
    t.nn.utils.parametrize.register_parametrization(m, "weight", P(5))
    a = m.weight.detach().clone()
    o = m.parametrizations.weight.original.detach().clone()
    m.weight = t.full((2, 2), 3.0)
    return a, o, m.weight.detach(), m.parametrizations.weight.original.detach()


@d("narrow tensor")
def _(t):
    x = t.ones(5, 2, requires_grad=True)
    y = x.narrow(0, 0, t.tensor(3).item())
    z = x.narrow(0, t.tensor(1), 3)
    z.sum().backward()
    return tuple(z.shape), x.grad, tuple(y.shape)


V["narrow len tensor"] = lambda t: tuple(t.ones(5, 2).narrow(0, 0, t.tensor(3)).shape)


@d("Cosine resume")
def _(t):
    p = t.nn.Parameter(t.ones(1))
    o = t.optim.SGD([p], lr=0.1)
    o.param_groups[0]["initial_lr"] = 0.1
    s = t.optim.lr_scheduler.CosineAnnealingLR(o, 10, last_epoch=5)
    return o.param_groups[0]["lr"], s.get_last_lr()


@d("spectral_norm complex")
def _(t):
    t.manual_seed(0)
    m = t.nn.Linear(3, 3, dtype=t.complex128, bias=False)
    with t.no_grad():
        m.weight.copy_(t.complex(mat(t), mat(t).sin()))
    m = t.nn.utils.parametrizations.spectral_norm(m, n_power_iterations=200)
    m(t.ones(3, dtype=t.complex128))
    return t.linalg.svdvals(m.weight.detach())[0]


V["gradient inf"] = lambda t: t.gradient(t.tensor([1.0, 2, float("inf"), 4, 5]))


def gsinc(t, v):
    x = leaf(t, v)
    t.sinc(x).sum().backward()
    return x.grad


V["sinc grad tiny"] = lambda t: gsinc(t, 1e-200).abs() < 1e-3
V["vander int8"] = lambda t: t.vander(t.tensor([10, 3], dtype=t.int8), 4)
V["tensor of tensors"] = lambda t: t.tensor([t.tensor([1]), t.tensor([2])])


def ro(n):
    def f(t):
        t.manual_seed(3)
        b = t.empty(4, dtype=t.float32)
        getattr(t, n)(4, out=b)
        t.manual_seed(3)
        return bool((b == getattr(t, n)(4)).all())

    return f


for n in ("randn", "rand"):
    V[n + " out"] = ro(n)


@d("scatter_reduce prod 2nd")
def _(t):
    x = t.tensor([0.0, 2, 0, 3], dtype=t.float64)
    i = t.tensor([0, 0, 1, 1])
    return t.func.hessian(
        lambda x: (t.ones(2, dtype=t.float64).scatter_reduce(0, i, x, "prod")).sum()
    )(x)


@d("save twice one buffer")
def _(t):
    b = io.BytesIO()
    t.save(t.tensor([1.0]), b, _use_new_zipfile_serialization=False)
    t.save(t.tensor([2.0]), b, _use_new_zipfile_serialization=False)
    b.seek(0)
    return t.load(b), t.load(b)


@d("save attributes")
def _(t):
    x = t.tensor([1.0])
    x.note = "hi"
    b = io.BytesIO()
    t.save(x, b)
    b.seek(0)
    return t.load(b, weights_only=False).note


V["histc min=max"] = lambda t: t.histc(t.tensor([1.0, 2, 2, 3]), bins=3, min=2, max=2)


@d("lstsq of a repeated matrix")
def _(t):
    a = t.eye(3, dtype=t.float64)[:, :2].reshape(1, 3, 2)
    found = t.linalg.lstsq(a, t.ones(4, 3, 1, dtype=t.float64), driver="gelsd")
    return found.rank, found.singular_values, found.residuals


V["inner of a number"] = lambda t: t.inner(t.ones(2, 2), t.tensor(2))
V["inner of a complex number"] = lambda t: t.inner(t.tensor(2j), t.ones(2))


@d("masked prod of a number is no alias")
def _(t):
    x = t.tensor(2.0)
    t.masked.prod(x, -1).fill_(5)
    return x, t.masked.prod(x, 0, keepdim=True)


for kind in ("int8", "uint8", "int32"):
    V[f"unravel_index {kind}"] = lambda t, kind=kind: t.unravel_index(
        t.tensor([3, 127], dtype=getattr(t, kind)), (7, 60)
    )
for around in ((1, 2), (-1, 2), (0, 1, 2, -1)):
    V[f"constant_pad_nd complex {around}"] = lambda t, around=around: t.constant_pad_nd(
        t.ones(2, 3, dtype=t.complex64) * 3, around, 1 + 2j
    )
V["view_copy of a transposed matrix"] = lambda t: t.view_copy(
    t.arange(6.0).reshape(2, 3).t(), (2, 3)
)
V["view_copy of an expanded row"] = lambda t: t.view_copy(t.arange(3.0).expand(2, 3), (6,))
for kind in ("int8", "uint8", "int16", "int32", "int64"):
    V[f"arange to a fraction {kind}"] = lambda t, kind=kind: [
        t.arange(*bounds, dtype=getattr(t, kind))
        for bounds in ((3.1,), (0, 3.1), (0.5, 3.1), (0, 5.5, 2), (3, -0.5, -1), (0, 5, 1.5))
    ]
V["bincount of nothing"] = lambda t: t.bincount(
    t.ones(0, dtype=t.int16), weights=t.ones(0), minlength=4
)
for kind in ("uint8", "int32", "int64"):
    V[f"logspace to a fraction {kind}"] = lambda t, kind=kind: [
        t.logspace(*ends, 4, dtype=getattr(t, kind)) for ends in ((0, 1.2), (0.5, 1.9), (0, 2))
    ]
for spread in ("var", "std", "var_mean", "std_mean"):
    V[f"{spread} of nothing"] = lambda t, spread=spread: [
        getattr(t, spread)(t.ones(0, 3), dim=0, correction=number) for number in (-1, 0, 1, 3)
    ]
