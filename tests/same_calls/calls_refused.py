"""Calls that torch refuses, and some that it does not: what is raised is of torch's type."""

import io

R = {}


def F(t):
    return t.nn.functional


D = {
    "embedding_bag offsets": lambda t: F(t).embedding_bag(
        t.tensor([0, 1]), t.ones(3, 2), t.tensor([0, 5])
    ),
    "bce target": lambda t: F(t).binary_cross_entropy(t.full((2,), 0.5), t.full((2,), 2.0)),
    "bce input": lambda t: F(t).binary_cross_entropy(t.full((2,), 1.5), t.full((2,), 1.0)),
    "add int alpha float": lambda t: t.add(t.tensor([1]), t.tensor([1]), alpha=1.0),
    "sub int alpha": lambda t: t.sub(t.tensor([1]), t.tensor([1]), alpha=1.5),
    "add complex alpha": lambda t: t.add(t.ones(1), t.ones(1), alpha=1j),
    "add bool alpha": lambda t: t.add(t.tensor([True]), t.tensor([True]), alpha=1.0),
    "sub bool": lambda t: t.tensor([True]) - t.tensor([True]),
    "sub bool2": lambda t: t.tensor([True]) - True,
    "rsub bool": lambda t: True - t.tensor([True]),
    "rsub": lambda t: t.rsub(t.tensor([True]), t.tensor([True])),
    "neg bool": lambda t: -t.tensor([True]),
    "narrow bool": lambda t: t.ones(3).narrow(0, True, 1),
    "narrow float": lambda t: t.ones(3).narrow(0, 1.0, 1),
    "narrow tensor bool": lambda t: t.ones(3).narrow(0, t.tensor(True), 1),
    "narrow tensor float": lambda t: t.ones(3).narrow(0, t.tensor(1.0), 1),
}


def x(t):
    return t.ones(2, 2)


for n, f in {
    "any": lambda t, o: t.any(x(t), out=o),
    "any dim": lambda t, o: t.any(x(t), 0, out=o),
    "all": lambda t, o: t.all(x(t), out=o),
    "all dim": lambda t, o: t.all(x(t), 0, out=o),
    "argmax": lambda t, o: t.argmax(x(t), out=o),
    "argmin": lambda t, o: t.argmin(x(t), 0, out=o),
    "nonzero": lambda t, o: t.nonzero(x(t), out=o),
    "searchsorted": lambda t, o: t.searchsorted(t.ones(2), t.ones(2), out=o),
    "bucketize": lambda t, o: t.bucketize(t.ones(2), t.ones(2), out=o),
    "isposinf": lambda t, o: t.isposinf(x(t), out=o),
    "isneginf": lambda t, o: t.isneginf(x(t), out=o),
    "signbit": lambda t, o: t.signbit(x(t), out=o),
    "multinomial": lambda t, o: t.multinomial(x(t), 1, out=o).shape[1],
    "eq": lambda t, o: t.eq(x(t), 1, out=o),
    "add": lambda t, o: t.add(x(t), 1, out=o),
    "sum": lambda t, o: t.sum(x(t), 0, out=o),
    "mm": lambda t, o: t.mm(x(t), x(t), out=o),
    "cat": lambda t, o: t.cat([x(t)], out=o),
    "exp": lambda t, o: t.exp(x(t) - 1, out=o),
    "max": lambda t, o: t.max(x(t), x(t), out=o),
    "bernoulli": lambda t, o: t.bernoulli(x(t), out=o) is not None,
    "normal": lambda t, o: t.normal(x(t), out=o.new_empty((2, 2))) is not None,
    "where": lambda t, o: t.where(x(t) > 0, x(t), x(t), out=o),
    "mean": lambda t, o: t.mean(x(t), 0, out=o),
    "cumsum": lambda t, o: t.cumsum(x(t), 0, out=o),
    "index_select": lambda t, o: t.index_select(x(t), 0, t.tensor([0]), out=o),
    "gather": lambda t, o: t.gather(x(t), 0, t.tensor([[0]]), out=o),
    "stack": lambda t, o: t.stack([x(t)], out=o),
    "abs": lambda t, o: t.abs(x(t), out=o),
    "isnan": lambda t, o: t.logical_not(x(t), out=o),
    "prod": lambda t, o: t.prod(x(t), 0, out=o),
    "std": lambda t, o: t.std(x(t), 0, out=o),
    "norm": lambda t, o: t.norm(x(t), dim=0, out=o),
    "diag": lambda t, o: t.diag(x(t), out=o),
    "tril": lambda t, o: t.tril(x(t), out=o),
    "count": lambda t, o: t.logsumexp(x(t), 0, out=o),
    "bmm": lambda t, o: t.bmm(t.ones(1, 2, 2), t.ones(1, 2, 2), out=o),
    "take": lambda t, o: t.take(x(t), t.tensor([0]), out=o),
    "masked_select": lambda t, o: t.masked_select(x(t), x(t) > 0, out=o),
    "inverse": lambda t, o: t.linalg.inv(t.eye(2), out=o),
    "conj": lambda t, o: t.angle(x(t), out=o),
    "clamp": lambda t, o: t.clamp(x(t), 0, 1, out=o),
    "floor": lambda t, o: t.floor(x(t), out=o),
    "sigmoid": lambda t, o: t.sigmoid(x(t), out=o),
    "bitand": lambda t, o: t.bitwise_and(t.tensor([1]), t.tensor([1]), out=o),
}.items():
    for dt in ("int32", "float32", "bool", "complex64", "int64", "float64", "float16", "uint8"):
        D[f"out {n} {dt}"] = lambda t, f=f, dt=dt: f(t, t.empty(0, dtype=getattr(t, dt)))
for n, key in {
    "first": ("a", 0, 0),
    "late": (5, "a"),
    "alone": ("a",),
    "many": (0, 0, 0, "a"),
}.items():
    D["string as index " + n] = lambda t, key=key: x(t)[key]
D["out poisson"] = lambda t: t.poisson(x(t), out=t.empty(0)).shape


def out2(name, call):
    for a, b in (
        ("int32", "int64"),
        ("float32", "int32"),
        ("float64", "int64"),
        ("float32", "int64"),
    ):
        D[f"out2 {name} {a} {b}"] = lambda t, a=a, b=b: call(
            t, (t.empty(0, dtype=getattr(t, a)), t.empty(0, dtype=getattr(t, b)))
        )


for n in ("max", "min", "sort", "mode", "median", "cummax", "cummin"):
    out2(n, lambda t, o, n=n: getattr(t, n)(x(t), 0, out=o))
out2("topk", lambda t, o: t.topk(x(t), 1, out=o))
out2("kthvalue", lambda t, o: t.kthvalue(x(t), 1, out=o))
D.update(
    {
        "huber complex": lambda t: F(t).huber_loss(t.ones(1), t.ones(1), delta=1j),
        "Huber complex": lambda t: t.nn.HuberLoss(delta=1j)(t.ones(1), t.ones(1)),
        "huber 0": lambda t: F(t).huber_loss(t.ones(1), t.ones(1), delta=0),
        "CE ignore prob": lambda t: F(t).cross_entropy(
            t.ones(2, 3), t.full((2, 3), 1 / 3), ignore_index=1
        ),
        "CE module": lambda t: t.nn.CrossEntropyLoss(ignore_index=1)(
            t.ones(2, 3), t.full((2, 3), 1 / 3)
        ),
        "RNN bias int": lambda t: t.nn.RNN(2, 2, bias=1),
        "LSTM bias int": lambda t: t.nn.LSTM(2, 2, bias=2),
        "GRU bias int": lambda t: t.nn.GRU(2, 2, bias=0),
        "smooth beta": lambda t: F(t).smooth_l1_loss(t.ones(1), t.ones(1), beta=-1.0),
        "embedding idx": lambda t: F(t).embedding(t.tensor([5]), t.ones(3, 2)),
        "embedding float": lambda t: F(t).embedding(t.tensor([1.0]), t.ones(3, 2)),
        "CE target range": lambda t: F(t).cross_entropy(t.ones(2, 3), t.tensor([0, 3])),
        "nll float": lambda t: F(t).nll_loss(t.ones(2, 3), t.ones(2)),
        "dropout p": lambda t: F(t).dropout(t.ones(2), 1.5),
        "Dropout p": lambda t: t.nn.Dropout(-1),
        "one_hot neg": lambda t: F(t).one_hot(t.tensor([-1])),
        "one_hot few": lambda t: F(t).one_hot(t.tensor([3]), 2),
        "one_hot float": lambda t: F(t).one_hot(t.tensor([1.0])),
        "groupnorm": lambda t: t.nn.GroupNorm(2, 3),
        "mha dim": lambda t: t.nn.MultiheadAttention(5, 2),
        "index oob": lambda t: t.ones(3)[3],
        "gather oob": lambda t: t.ones(3).gather(0, t.tensor([3])),
        "scatter oob": lambda t: t.ones(3).scatter(0, t.tensor([3]), 1.0),
        "index_select oob": lambda t: t.ones(3).index_select(0, t.tensor([3])),
        "index_select neg": lambda t: t.ones(3).index_select(0, t.tensor([-1])),
        "take oob": lambda t: t.ones(3).take(t.tensor([3])),
        "multinomial neg": lambda t: t.multinomial(t.tensor([-1.0, 2]), 1),
        "bernoulli range": lambda t: t.bernoulli(t.tensor([2.0])),
        "cat dtype": lambda t: t.cat([t.ones(2, 2), t.ones(2, 3)]),
        "mm dtype": lambda t: t.ones(2, 2) @ t.ones(2, 2, dtype=t.float64),
        "linear dtype": lambda t: F(t).linear(t.ones(2), t.ones(3, 2, dtype=t.float64)),
        "conv dtype": lambda t: F(t).conv1d(t.ones(1, 1, 3), t.ones(1, 1, 2, dtype=t.float64)),
        "inplace cast": lambda t: t.tensor([1]).add_(1.5),
        "inplace bool": lambda t: t.tensor([True]).add_(1),
        "idiv int": lambda t: t.tensor([1]).div_(2),
        "item": lambda t: t.ones(2).item(),
        "bool": lambda t: bool(t.ones(2)),
        "int": lambda t: int(t.ones(2)),
        "backward nonscalar": lambda t: (t.ones(2, requires_grad=True) * 2).backward(),
        "backward none": lambda t: t.ones(1).backward(),
        "leaf write": lambda t: t.ones(1, requires_grad=True).add_(1),
        "numpy grad": lambda t: t.ones(1, requires_grad=True).numpy(),
        "int grad": lambda t: t.tensor([1], requires_grad=True),
        "view size": lambda t: t.ones(4).view(3),
        "view stride": lambda t: t.ones(2, 3).t().view(6),
        "expand": lambda t: t.ones(2).expand(3),
        "reshape -1": lambda t: t.ones(4).reshape(-1, -1),
        "squeeze dim": lambda t: t.ones(2).squeeze(3),
        "perm": lambda t: t.ones(2, 2).permute(0, 0),
        "repeat few": lambda t: t.ones(2, 2).repeat(2),
        "bincount neg": lambda t: t.bincount(t.tensor([-1])),
        "chol": lambda t: t.linalg.cholesky(-t.eye(2)),
        "inv": lambda t: t.linalg.inv(t.zeros(2, 2)),
        "solve": lambda t: t.linalg.solve(t.zeros(2, 2), t.ones(2)),
        "topk": lambda t: t.ones(2).topk(3),
        "kthvalue": lambda t: t.ones(2).kthvalue(3),
        "quantile": lambda t: t.quantile(t.ones(2), 1.5),
        "mean int": lambda t: t.tensor([1]).mean(),
        "softmax int": lambda t: t.tensor([1]).softmax(0),
        "linspace": lambda t: t.linspace(0, 1, -1),
        "arange step": lambda t: t.arange(0, 3, -1),
        "arange 0": lambda t: t.arange(0, 3, 0),
        "eye": lambda t: t.eye(-1),
        "ones neg": lambda t: t.ones(-1),
        "to str": lambda t: t.ones(1).to("nodevice"),
        "float tensor index": lambda t: t.ones(3)[t.tensor([1.0])],
        "shift": lambda t: t.ones(1) << 1,
        "bitand": lambda t: t.ones(1) & 1,
        "max empty": lambda t: t.ones(0).max(),
        "argmax empty": lambda t: t.ones(0).argmax(),
        "amax empty": lambda t: t.ones(0).amax(),
        "min dim": lambda t: t.ones(2, 0).min(1),
        "std str": lambda t: t.ones(2).std("a"),
        "compare complex": lambda t: t.ones(1, dtype=t.complex64) < 1,
        "max complex": lambda t: t.ones(1, dtype=t.complex64).max(),
        "clamp none": lambda t: t.ones(1).clamp(),
        "floor complex": lambda t: t.ones(1, dtype=t.complex64).floor(),
        "sign complex": lambda t: t.ones(1, dtype=t.complex64).sign(),
        "sort complex": lambda t: t.ones(1, dtype=t.complex64).sort(),
        "trunc mode": lambda t: t.div(t.ones(1), 1, rounding_mode="x"),
        "div int zero": lambda t: t.tensor([1]) // 0,
        "rem int zero": lambda t: t.tensor([1]) % 0,
        "fmod int zero": lambda t: t.tensor([1]).fmod(0),
        "int neg pow": lambda t: t.tensor([2]) ** -1,
        "int pow tensor": lambda t: t.tensor([2]) ** t.tensor([-1]),
        "eq": lambda t: t.eq(2, t.ones(1)),
        "scatter shape": lambda t: t.ones(2).scatter(0, t.tensor([[0]]), 1.0),
        "unfold": lambda t: t.ones(3).unfold(0, 4, 1),
        "as_strided": lambda t: t.ones(3).as_strided((4,), (1,)),
        "split": lambda t: t.ones(3).split([1, 1]),
        "chunk 0": lambda t: t.ones(3).chunk(0),
        "stack": lambda t: t.stack([t.ones(2), t.ones(3)]),
        "cat empty": lambda t: t.cat([]),
        "stack empty": lambda t: t.stack([]),
        "einsum": lambda t: t.einsum("ij,jk", t.ones(2, 3), t.ones(2, 3)),
        "bmm": lambda t: t.bmm(t.ones(2, 2), t.ones(2, 2)),
        "mv": lambda t: t.mv(t.ones(2, 3), t.ones(2)),
        "dot": lambda t: t.dot(t.ones(2), t.ones(3)),
        "dot dtype": lambda t: t.dot(t.ones(2), t.ones(2, dtype=t.float64)),
        "addmm": lambda t: t.addmm(t.ones(3, 3), t.ones(2, 3), t.ones(3, 2)),
        "conv ch": lambda t: F(t).conv2d(t.ones(1, 3, 4, 4), t.ones(2, 2, 3, 3)),
        "conv k": lambda t: F(t).conv2d(t.ones(1, 1, 2, 2), t.ones(1, 1, 3, 3)),
        "pool": lambda t: F(t).max_pool2d(t.ones(1, 1, 2, 2), 3),
        "pool pad": lambda t: F(t).max_pool2d(t.ones(1, 1, 4, 4), 2, padding=2),
        "bn": lambda t: F(t).batch_norm(t.ones(1, 2), None, None, training=True),
        "ln": lambda t: F(t).layer_norm(t.ones(2, 3), (2,)),
        "gn": lambda t: F(t).group_norm(t.ones(2, 3), 2),
        "inorm": lambda t: F(t).instance_norm(t.ones(1, 2, 1)),
        "pad reflect": lambda t: F(t).pad(t.ones(1, 1, 2), (2, 2), mode="reflect"),
        "pixel": lambda t: F(t).pixel_shuffle(t.ones(1, 3, 2, 2), 2),
        "interp": lambda t: F(t).interpolate(t.ones(1, 1, 2), size=(2, 2)),
        "glu": lambda t: F(t).glu(t.ones(3)),
        "mse": lambda t: F(t).mse_loss(t.ones(2, requires_grad=True), t.ones(3)),
        "ce shape": lambda t: F(t).cross_entropy(t.ones(2, 3), t.tensor([0, 1, 2])),
        "fft": lambda t: t.fft.fft(t.ones(0)),
        "svd 1d": lambda t: t.linalg.svd(t.ones(2)),
        "trace": lambda t: t.trace(t.ones(2)),
        "det": lambda t: t.linalg.det(t.ones(2, 3)),
        "cross": lambda t: t.linalg.cross(t.ones(2), t.ones(2)),
        "diag 3d": lambda t: t.diag(t.ones(1, 1, 1)),
        "tril 1d": lambda t: t.ones(2).tril(),
        "rot90": lambda t: t.ones(2).rot90(),
        "flip dup": lambda t: t.ones(2).flip(0, 0),
        "roll": lambda t: t.ones(2).roll((1, 1), 0),
        "meshgrid": lambda t: t.meshgrid(t.ones(2, 2)),
        "where dt": lambda t: t.where(t.ones(2), t.ones(2), t.ones(2)),
        "masked_select": lambda t: t.ones(2).masked_select(t.ones(2)),
        "masked_fill": lambda t: t.ones(2).masked_fill(t.ones(2), 0),
        "mfill 1d": lambda t: t.ones(2).masked_fill(t.ones(2) > 0, t.ones(1)),
        "index_add": lambda t: t.ones(2).index_add(0, t.tensor([0]), t.ones(2)),
        "index_copy": lambda t: t.ones(2).index_copy(0, t.tensor([0]), t.ones(2)),
        "set mismatch": lambda t: t.ones(2).__setitem__(slice(0, 2), t.ones(3)),
        "from_numpy": lambda t: t.from_numpy([1]),
        "frombuffer": lambda t: t.frombuffer(b"", dtype=t.int8),
        "tensor ragged": lambda t: t.tensor([[1], [1, 2]]),
        "tensor str": lambda t: t.tensor("a"),
        "tensor None": lambda t: t.tensor(None),
        "resize": lambda t: t.ones(2, requires_grad=True).resize_(3),
        "deepcopy nonleaf": lambda t: __import__("copy").deepcopy(
            t.ones(1, requires_grad=True) * 2
        ),
        "hook int": lambda t: t.ones(1).register_hook(lambda g: g),
        "retain": lambda t: t.ones(1).retain_grad(),
        "func in-place vmap": lambda t: t.vmap(lambda x: t.ones(1).add_(x))(t.ones(2)),
        "grad nonscalar": lambda t: t.func.grad(lambda x: x)(t.ones(2)),
        "grad unused": lambda t: t.autograd.grad(
            t.ones(1, requires_grad=True).sum(), [t.ones(1, requires_grad=True)]
        ),
    }
)
R |= {
    "empty overflow": lambda t: t.empty((2, 4, 2**29, 2**29)),
    "resize overflow": lambda t: t.empty(()).resize_([2, 4, 2**29, 2**29]),
    "resize stride overflow": lambda t: t.empty(()).resize_([0, 4, 2**61]),
    "hsplit 0d": lambda t: t.hsplit(t.tensor(1), 2),
    "addcdiv int": lambda t: t.addcdiv(t.tensor([1]), t.tensor([1]), t.tensor([1])),
    "take from none": lambda t: t.empty(10, 0)[:, t.tensor([0, 1])],
    "load no file": lambda t: t.load(5),
    "save no file": lambda t: t.save(1, 5),
    "load keyword": lambda t: t.load(io.BytesIO(), foo=1),
    "sum dtype and out": lambda t: t.sum(x(t), 0, dtype=t.float64, out=t.empty(2)),
    "softmax dtype and out": lambda t: t.softmax(x(t), 0, dtype=t.float64, out=x(t)),
    "cumsum dtype and out": lambda t: t.cumsum(x(t), 0, dtype=t.float64, out=x(t)),
    "fold blocks": lambda t: F(t).unfold(t.ones(1, 1, 2, 2), (3, 3)),
    "grid last": lambda t: F(t).grid_sample(t.ones(1, 3, 4, 4), t.ones(1, 2, 2, 3)),
    "ctc lengths": lambda t: F(t).ctc_loss(
        t.randn(5, 1, 3), t.tensor([[1, 2]]), t.tensor([5.0]), t.tensor([2.0])
    ),
    "insert no module": lambda t: t.nn.Sequential(t.nn.ReLU()).insert(1, [t.nn.ReLU()]),
    "module to copy": lambda t: t.nn.Linear(1, 1).to("cpu", copy=True),
}
R.update(D)
R["take_along_dim of a number"] = lambda t: t.take_along_dim(t.tensor(3), t.tensor(0), 0)
R["index_reduce of too many rows"] = lambda t: t.index_reduce(
    t.ones(3), 0, t.tensor([0]), t.ones(2), "amax"
)
