"""Writes after `retain_grad`, memory behind results, transforms, spectra, guards at zero, views."""

import math

from listed_rows import TORCH_SAYS, Row

ROWS = {}


def doubles(t, *values):
    return t.tensor(values, dtype=t.float64)


# --- retain_grad, then a write in place: the gradient kept is that of what was written ---


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


#: What is written, and its slope by the value before.
WRITES = {
    "add_": (lambda t, y: y.add_(1), [1, 1]),
    "+=": (lambda t, y: y.__iadd__(1), [1, 1]),
    "sub_": (lambda t, y: y.sub_(2), [1, 1]),
    "mul_": (lambda t, y: y.mul_(3), [3, 3]),
    "div_": (lambda t, y: y.div_(2), [0.5, 0.5]),
    "pow_": (lambda t, y: y.pow_(2), [4, 4]),
    "square_": (lambda t, y: y.square_(), [4, 4]),
    "neg_": (lambda t, y: y.neg_(), [-1, -1]),
    "abs_": (lambda t, y: y.abs_(), [1, 1]),
    "exp_": (lambda t, y: y.exp_(), [math.exp(2)] * 2),
    "sin_": (lambda t, y: y.sin_(), [math.cos(2)] * 2),
    "tanh_": (lambda t, y: y.tanh_(), [1 - math.tanh(2) ** 2] * 2),
    "sqrt_": (lambda t, y: y.sqrt_(), [0.5 / math.sqrt(2)] * 2),
    "relu_": (lambda t, y: y.relu_(), [1, 1]),
    "clamp_": (lambda t, y: y.clamp_(0, 1), [0, 0]),
    "fill_": (lambda t, y: y.fill_(1.0), [0, 0]),
    "zero_": (lambda t, y: y.zero_(), [0, 0]),
    "copy_": (lambda t, y: y.copy_(t.zeros(2)), [0, 0]),
    "y[0] =": (lambda t, y: y.__setitem__(0, 5.0), [0, 1]),
    "y[:1].mul_": (lambda t, y: y[:1].mul_(2), [2, 1]),
    "masked_fill_": (lambda t, y: y.masked_fill_(t.tensor([True, False]), 0), [0, 1]),
    "index_fill_": (lambda t, y: y.index_fill_(0, t.tensor([0]), 1.0), [0, 1]),
    "index_add_": (lambda t, y: y.index_add_(0, t.tensor([1]), doubles(t, 1)), [1, 1]),
    "scatter_": (lambda t, y: y.scatter_(0, t.tensor([0]), doubles(t, 1)), [0, 1]),
    "cumsum_": (lambda t, y: y.cumsum_(0), [2, 1]),
    "lerp_": (lambda t, y: y.lerp_(doubles(t, 1, 1), 0.25), [0.75, 0.75]),
    "addcmul_": (lambda t, y: y.addcmul_(doubles(t, 1, 1), doubles(t, 1, 1)), [1, 1]),
}
ROWS |= {
    f"retain_grad, {name}": Row(retained(write), ([1, 1], [2 * number for number in slope]))
    for name, (write, slope) in WRITES.items()
}

# --- as_strided of results in any order of memory ---

LAYOUTS = ((2, 0, 1), (1, 2, 0), (0, 2, 1), (1, 0, 2))
POINTWISE = {
    "*": lambda x: x * 1.0,
    "exp": lambda x: x.exp(),
    "neg": lambda x: -x,
    "abs": lambda x: x.abs(),
    "clone": lambda x: x.clone(),
    "relu": lambda x: x.relu(),
    "cumsum": lambda x: x.cumsum(0),
    "softmax": lambda x: x.softmax(0),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1),
    "where": lambda x: x.where(x > 3, -x),
}


def in_memory(op, layout):
    """Return a call that reads a result's memory, and writes to it, by `as_strided`."""

    def call(t):
        y = op(t.arange(12.0).reshape(2, 2, 3).permute(layout))
        order = sorted(range(3), key=lambda dim: -y.stride(dim))
        memory = y.as_strided((12,), (1,))
        same = t.equal(memory, y.permute(order).reshape(-1))
        memory[5] = -100.0
        return same, int((y == -100.0).sum()), y.stride() if op is POINTWISE["*"] else ()

    return call


ROWS |= {
    f"as_strided of {name} of {layout}": Row(in_memory(op, layout))
    for name, op in POINTWISE.items()
    for layout in LAYOUTS
}
ROWS["as_strided of a permuted product"] = Row(
    lambda t: (t.arange(12.0).reshape(2, 2, 3).permute(2, 0, 1) * 1.0).as_strided((4,), (1,)),
    [0, 1, 2, 3],
)

# --- vmap and jacfwd ---


def norms(t):
    return {
        "norm": lambda x: x.norm(),
        "norm(3)": lambda x: x.norm(3),
        "std": lambda x: x.std(),
        "dist": lambda x: t.dist(x, t.zeros(2)),
        "cdist": lambda x: t.cdist(x[None], t.zeros(1, 2)).sum(),
        "normalize": lambda x: t.nn.functional.normalize(x, dim=0).sum(),
        "cosine_similarity": lambda x: t.cosine_similarity(x, t.ones(2), dim=0),
    }


def at_zero(name):
    def call(t):
        slopes = t.func.vmap(t.func.grad(norms(t)[name]))(t.zeros(3, 2))
        return bool(slopes.isfinite().all()), slopes

    return call


EXTREMES = {
    "amax": lambda x: x.amax(),
    "amin": lambda x: x.amin(),
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "aminmax": lambda x: x.aminmax()[0],
}
ROWS |= {
    f"vmap(grad({name})) of numbers": Row(
        lambda t, f=f: t.func.vmap(t.func.grad(f))(t.arange(3.0)), [1, 1, 1]
    )
    for name, f in EXTREMES.items()
}
ROWS |= {f"vmap(grad({name})) at zero": Row(at_zero(name)) for name in
    ("norm", "norm(3)", "std", "dist", "cdist", "normalize", "cosine_similarity")}  # fmt: skip


def batched_convolution(dims):
    """Return whether derivatives by input and weight of a batch are those of its samples."""

    def call(t):
        convolve = getattr(t.nn.functional, f"conv{dims}d")
        x = t.arange(2.0 * 3 * 4**dims).reshape(2, 1, 3, *[4] * dims).sin()
        w = t.arange(2.0 * 2 * 3 * 2**dims).reshape(2, 2, 3, *[2] * dims).cos()

        def slopes(x, w):
            out, pull = t.func.vjp(convolve, x, w)
            return pull(t.ones_like(out))

        together = t.func.vmap(slopes)(x, w)
        apart = [slopes(a, b) for a, b in zip(x, w, strict=True)]
        return [t.allclose(together[i], t.stack([a[i] for a in apart]), 1e-4, 1e-4) for i in (0, 1)]

    return call


ROWS |= {f"vmap(vjp(conv{n}d))": Row(batched_convolution(n), [True, True]) for n in (1, 2, 3)}
ROWS["jacfwd(as_strided)"] = Row(
    lambda t: t.func.jacfwd(lambda x: x.as_strided((2,), (2,)))(t.arange(4.0)),
    [[1, 0, 0, 0], [0, 0, 1, 0]],
)
ROWS["hessian(norm) at 3, 4"] = Row(
    lambda t: t.func.hessian(lambda x: x.norm())(doubles(t, 3, 4)),
    [[16 / 125, -12 / 125], [-12 / 125, 9 / 125]],
)


def forward_as_reverse(function, matrix):
    """Return whether Jacobians by columns and by rows agree, and the one by rows."""

    def call(t):
        x = t.tensor(matrix, dtype=t.float64)
        forward, reverse = t.func.jacfwd(function(t))(x), t.func.jacrev(function(t))(x)
        return t.allclose(forward, reverse), forward.contiguous()

    return call


TALL = [[1.0, 2.0], [0.5, -1.0], [2.0, 0.25]]
ROUND = [[2.0, 0.5, 0.25], [0.5, 1.0, -0.75], [0.25, -0.75, 4.0]]
SPECTRA = {
    "pinv": (lambda t: t.linalg.pinv, TALL),
    "eigh": (lambda t: lambda x: t.linalg.eigh((x + x.T) / 2)[1].abs(), ROUND),
    "eig": (lambda t: lambda x: t.linalg.eig(x)[1].abs(), ROUND),
    "svd": (lambda t: lambda x: t.linalg.svd(x, full_matrices=False)[0].abs(), TALL),
    "slope of svdvals": (lambda t: t.func.grad(lambda x: t.linalg.svdvals(x).square().sum()), TALL),
    "slope of the nuclear norm": (lambda t: t.func.grad(lambda x: t.linalg.norm(x, "nuc")), TALL),
    "slope of norm(x, 2)": (lambda t: t.func.grad(lambda x: t.linalg.norm(x, 2)), TALL),
    "slope of eigvalsh": (
        lambda t: t.func.grad(lambda x: t.linalg.eigvalsh(x + x.T).sin().sum()),
        ROUND,
    ),
}
ROWS |= {f"jacfwd({name})": Row(forward_as_reverse(*given)) for name, given in SPECTRA.items()}


def hessian_at_solution(t):
    def distance(x):
        u, _, v = t.linalg.svd(x)
        return ((u @ v - c) ** 2).sum()

    x = doubles(t, [2.0, 0.5], [0.25, 1.0])
    u, _, v = t.linalg.svd(x)
    c = u @ v
    plain = t.autograd.functional.hessian(distance, x)
    return t.allclose(plain, t.func.hessian(distance)(x)), plain


ROWS["hessian of (U @ Vh - c)² at its solution"] = Row(hessian_at_solution)


def residuals(t):
    a = t.tensor(TALL, dtype=t.float64, requires_grad=True)
    b = t.tensor([[1.0], [2.0], [-1.0]], dtype=t.float64)
    t.linalg.lstsq(a, b, driver="gels").residuals.sum().backward()
    solution = t.linalg.lstsq(a.detach(), b).solution
    rest = a.detach() @ solution - b
    return t.allclose(a.grad, 2 * rest @ solution.T), a.grad


ROWS["gradient of lstsq's residuals"] = Row(residuals)


def value_of_index_fill(t):
    value = t.tensor(1.0, requires_grad=True)
    t.zeros(4).index_fill(0, t.tensor([1, 1, 2]), value).sum().backward()
    return value.grad


ROWS["gradient of index_fill's value"] = Row(value_of_index_fill, 2.0)

# --- views ---


def conjugate(way):
    def call(t):
        z = t.tensor([[1 + 1j, 2 - 1j], [3j, 4 + 0j]])
        way(z)[0, 1] = 5 + 2j
        return z

    return call


REACHED = [[1 + 1j, 5 - 2j], [3j, 4]]
ACROSS = [[1 + 1j, 2 - 1j], [5 - 2j, 4]]
ROWS |= {
    "write to conj()": Row(conjugate(lambda z: z.conj()), REACHED),
    "write to mH": Row(conjugate(lambda z: z.mH), ACROSS),
    "write to H": Row(conjugate(lambda z: z.H), ACROSS),
    "write to adjoint()": Row(conjugate(lambda z: z.adjoint()), ACROSS),
}


def view_without_grad(t):
    x = t.ones(3, requires_grad=True)
    with t.no_grad():
        view = x[:2]
    return view.requires_grad, view.is_leaf


def view_before_grad(t):
    x = t.ones(3)
    view = x[:2]
    x.requires_grad_()
    return view.requires_grad


def view_before_write(t):
    x, w = t.zeros(3), t.ones(3, requires_grad=True)
    view = x[:2]
    x.mul_(w)
    return view.requires_grad


ROWS |= {
    "view made in no_grad": Row(view_without_grad),
    "view made before its base required grad": Row(view_before_grad),
    "view made before its base was written with grad": Row(view_before_write, True),
}


def out_is_view(make, expected):
    def call(t):
        base = t.zeros(2, 4)
        make(t, base[1])
        return base[1], base[0]

    return Row(call, (expected, [0, 0, 0, 0]))


ROWS |= {
    "arange(out=view)": out_is_view(lambda t, v: t.arange(4, out=v), [0, 1, 2, 3]),
    "linspace(out=view)": out_is_view(lambda t, v: t.linspace(0, 3, 4, out=v), [0, 1, 2, 3]),
    "logspace(out=view)": out_is_view(lambda t, v: t.logspace(0, 3, 4, out=v), [1, 10, 100, 1000]),
    "full(out=view)": out_is_view(lambda t, v: t.full((4,), 2.0, out=v), [2, 2, 2, 2]),
    "ones(out=view)": out_is_view(lambda t, v: t.ones(4, out=v), [1, 1, 1, 1]),
}


def pad_alone(mode, amounts):
    def call(t):
        x = t.arange(8.0).reshape(1, 2, 4)
        padded = t.nn.functional.pad(x, amounts, mode=mode)
        values = padded.clone()
        padded.fill_(-1)
        return values, x

    return Row(call, TORCH_SAYS)


ROWS |= {
    f"pad of {amounts}, {mode}, is no alias": pad_alone(mode, amounts)
    for mode in ("reflect", "replicate", "circular")
    for amounts in ((0, 0), (-1, 0), (-1, -1), (-1, 2))
}


def second_of_product(t):
    x = doubles(t, 0.0, 0.0, 2.0).requires_grad_()
    product = t.ones(1, dtype=t.float64).scatter_reduce(0, t.tensor([0, 0, 0]), x, "prod")
    (slope,) = t.autograd.grad(product.sum(), x, create_graph=True)
    (second,) = t.autograd.grad(slope[0], x)
    return second


ROWS["second derivative of scatter_reduce('prod') of zeros"] = Row(
    second_of_product, [0, 2, 0], "second derivatives of products by `scatter_reduce`"
)
