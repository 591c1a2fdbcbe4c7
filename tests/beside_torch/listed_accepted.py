"""Calls that torch takes and that once raised, or gave no gradient."""

# ruff: noqa: E501  as tables they are easier to read

import io
import math

import numpy as np
from listed_rows import Row

ROWS = {}


def F(t):
    return t.nn.functional


def takes(name, call, *expected, deviation=""):
    ROWS[name] = Row(call, *expected, deviation=deviation)


def shapes(result):
    """Return the shapes of what a call gives, as tuples."""
    if isinstance(result, (tuple, list)):
        return [shapes(item) for item in result]
    return tuple(result.shape)


# --- batches without samples ---


def layer(kind, *options, **given):
    return lambda t: getattr(t.nn, kind)(*options, **given)


EMPTY = {
    "MultiheadAttention": (layer("MultiheadAttention", 4, 2, batch_first=True), [(0, 3, 4)] * 3,
        [(0, 3, 4), (0, 3, 3)]),
    "TransformerEncoderLayer": (layer("TransformerEncoderLayer", 4, 2, 8, batch_first=True), [(0, 3, 4)], (0, 3, 4)),
    "TransformerDecoderLayer": (layer("TransformerDecoderLayer", 4, 2, 8, batch_first=True), [(0, 3, 4)] * 2, (0, 3, 4)),
    "Transformer": (layer("Transformer", 4, 2, 1, 1, 8, batch_first=True), [(0, 3, 4), (0, 5, 4)], (0, 5, 4)),
    "RNN": (layer("RNN", 3, 4), [(2, 0, 3)], [(2, 0, 4), (1, 0, 4)]),
    "GRU": (layer("GRU", 3, 4), [(2, 0, 3)], [(2, 0, 4), (1, 0, 4)]),
    "LSTM": (layer("LSTM", 3, 4), [(2, 0, 3)], [(2, 0, 4), [(1, 0, 4), (1, 0, 4)]]),
    "AdaptiveMaxPool1d": (layer("AdaptiveMaxPool1d", 2), [(0, 2, 4)], (0, 2, 2)),
    "AdaptiveMaxPool2d": (layer("AdaptiveMaxPool2d", 2), [(0, 2, 4, 4)], (0, 2, 2, 2)),
    "AdaptiveMaxPool3d": (layer("AdaptiveMaxPool3d", 2), [(0, 2, 4, 4, 4)], (0, 2, 2, 2, 2)),
    "FractionalMaxPool2d": (layer("FractionalMaxPool2d", 2, output_size=2), [(0, 2, 4, 4)], (0, 2, 2, 2)),
    "FractionalMaxPool3d": (layer("FractionalMaxPool3d", 2, output_size=2), [(0, 2, 4, 4, 4)], (0, 2, 2, 2, 2)),
    "BatchNorm1d": (layer("BatchNorm1d", 2), [(0, 2, 3)], (0, 2, 3)),
    "BatchNorm2d": (layer("BatchNorm2d", 2), [(0, 2, 3, 3)], (0, 2, 3, 3)),
    "BatchNorm3d": (layer("BatchNorm3d", 2), [(0, 2, 3, 3, 3)], (0, 2, 3, 3, 3)),
}  # fmt: skip
for _name, (_module, _sizes, _expected) in EMPTY.items():

    def _run(t, module=_module, sizes=_sizes):
        t.manual_seed(0)
        return shapes(module(t)(*[t.ones(size) for size in sizes]))

    takes(f"{_name} of an empty batch", _run, _expected)
takes(
    "grid_sample of an empty batch",
    lambda t: shapes(F(t).grid_sample(t.ones(0, 2, 3, 3), t.ones(0, 2, 2, 2))),
    (0, 2, 2, 2),
)
for _dims in (1, 2, 3):

    def _unpool(t, n=_dims):
        x = t.ones(0, 2, *[2] * n)
        return shapes(getattr(t.nn, f"MaxUnpool{n}d")(2)(x, x.long()))

    takes(f"MaxUnpool{_dims}d of an empty batch", _unpool, (0, 2, *[4] * _dims))
takes(
    "cross_entropy of no classes",
    lambda t: F(t).cross_entropy(t.ones(0, 0), t.ones(0, dtype=t.int64), reduction="sum"),
)

# --- images of bytes ---

for _mode in ("bilinear", "bicubic"):
    for _antialias in (False, True):

        def _resize(t, mode=_mode, antialias=_antialias):
            x = (t.arange(75) * 37 % 256).to(t.uint8).reshape(1, 3, 5, 5)
            return F(t).interpolate(x, (3, 7), mode=mode, antialias=antialias)

        takes(f"interpolate of uint8, {_mode}, antialias={_antialias}", _resize)

# --- factories, numbers, overloads ---

takes("zeros(out=) with dtype of out", lambda t: t.zeros(2, out=t.ones(2, dtype=t.int64)), [0, 0])
takes(
    "full(out=) of another dtype",
    lambda t: t.full((2,), 3.0, out=t.ones(2, dtype=t.float64)),
    [3, 3],
)
takes(
    "arange(out=) of another dtype",
    lambda t: t.arange(3, out=t.ones(3, dtype=t.float64)),
    [0, 1, 2],
)
takes(
    "linspace(out=) of another dtype",
    lambda t: t.linspace(0, 2, 3, out=t.ones(3, dtype=t.float64)),
    [0, 1, 2],
)
takes(
    "eye(out=) of another dtype",
    lambda t: t.eye(2, out=t.ones(2, 2, dtype=t.float64)),
    [[1, 0], [0, 1]],
)
takes("cumsum(out=)", lambda t: t.cumsum(t.ones(3), 0, out=t.empty(3)), [1, 2, 3])
takes(
    "addmm(out=)",
    lambda t: t.addmm(t.ones(1, 1), t.ones(1, 2), t.ones(2, 1), out=t.empty(1, 1)),
    [[3]],
)
takes(
    "normalize(out=)",
    lambda t: F(t).normalize(t.tensor([[3.0, 4.0]]), out=t.empty(1, 2)),
    [[0.6, 0.8]],
)
takes(
    "random_(from, None)",
    lambda t: bool((t.empty(9, dtype=t.int8).random_(100, None) >= 100).all()),
    True,
)
takes("add(True, True)", lambda t: t.add(True, True))
takes("addcmul(x, 2, a, b)", lambda t: t.addcmul(t.ones(1), 2, t.ones(1), t.ones(1)), [3])
takes("add(x, 2, y)", lambda t: t.add(t.ones(1), 2, t.ones(1)), [3])
takes("sum(axis=)", lambda t: t.ones(2, 3).sum(axis=1), [3, 3])
takes("tensor_split(indices=)", lambda t: t.arange(3).tensor_split(indices=(1,)), ([0], [1, 2]))
takes("Tensor.split(split_size=)", lambda t: t.arange(3).split(split_size=2), ([0, 1], [2]))
takes("as_strided_", lambda t: t.arange(6).as_strided_((2, 2), (1, 2)), [[0, 2], [1, 3]])
takes("[1, 2, 3][tensor([1])]", lambda t: [1, 2, 3][t.tensor([1])], 2)
takes(
    "65 dimensions",
    lambda t: t.ones([1] * 65).ndim,
    ValueError,
    deviation="more than 64 dimensions",
)
takes("cat([empty, x], 1)", lambda t: t.cat([t.empty(0), t.ones(1, 2)], 1), [[1, 1]])
takes("cat([empty, empty], 1)", lambda t: shapes(t.cat([t.empty(0), t.empty(0)], 1)))
takes("GradScaler", lambda t: t.GradScaler("cpu", enabled=False).is_enabled(), False)
takes(
    "SobolEngine",
    lambda t: t.quasirandom.SobolEngine(2).draw(3),
    [[0, 0], [0.5, 0.5], [0.75, 0.25]],
)
takes(
    "nn.grad.conv1d_input",
    lambda t: t.nn.grad.conv1d_input((1, 1, 3), t.ones(1, 1, 2), t.ones(1, 1, 2)),
    [[[1, 2, 1]]],
)
takes(
    "nn.grad.conv2d_weight",
    lambda t: t.nn.grad.conv2d_weight(t.ones(1, 1, 2, 2), (1, 1, 1, 1), t.ones(1, 1, 2, 2)),
    [[[[4]]]],
)
takes("_foreach_add", lambda t: t._foreach_add([t.ones(1), t.ones(2)], 2), ([3], [3, 3]))
takes("_foreach_mul_", lambda t: (x := [t.ones(1)], t._foreach_mul_(x, 3), x)[2], ([3],))
takes("_foreach_norm", lambda t: t._foreach_norm([t.tensor([3.0, 4.0])]), (5,))
takes("_foreach_sqrt", lambda t: t._foreach_sqrt([t.tensor([4.0])]), ([2],))
takes(
    "default_collate as a module",
    lambda t: t.utils.data.default_collate([{"a": 1}, {"a": 2}])["a"],
    [1, 2],
)

# --- modes, functions, hooks ---


def class_without_grad(t):
    @t.no_grad()
    class Net(t.nn.Linear):
        pass

    return Net(1, 1).weight.requires_grad


def function_with_defaults(t):
    class Scale(t.autograd.Function):
        @staticmethod
        def forward(x, factor=3.0, note="none"):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None, None

    x = t.ones(1, requires_grad=True)
    Scale.apply(x).sum().backward()
    return x.grad


def function_of_others(t):
    class Named(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, "name", 5

        @staticmethod
        def backward(ctx, g, *others):
            return g * 2

    x = t.ones(1, requires_grad=True)
    doubled, name, number = Named.apply(x)
    doubled.sum().backward()
    return x.grad, name, number


def anomaly(t):
    with t.autograd.detect_anomaly(check_nan=False):
        x = t.zeros(1, requires_grad=True)
        (x / x).sum().backward()
    return x.grad


def accumulate_hook(t):
    seen, x = [], t.ones(1, requires_grad=True)
    node = (x * 2).grad_fn.next_functions[0][0]
    node.register_prehook(lambda grads: seen.append("before"))
    node.register_hook(lambda *grads: seen.append("after"))
    (x * 2).sum().backward()
    return seen, x.grad


def prehook_of_outputs(t):
    seen, x = [], t.arange(4.0, requires_grad=True)
    a, b = (x * 1).unbind()[:2]
    a.grad_fn.register_prehook(lambda grads: seen.append(len(grads)))
    (a + 2 * b).backward()
    return seen, x.grad


def inference_views(t):
    with t.inference_mode():
        x = t.ones(2)
    view = x[:1]
    with t.inference_mode():
        outside = t.ones(2)[:1].is_inference()
    return view.is_inference(), outside


def set_of_parameter(t):
    p = t.nn.Parameter(t.ones(2))
    with t.no_grad():
        p.set_(t.zeros(3))
    return p, p.is_leaf


def checkpoint_in_autocast(t):
    x = t.ones(2, 2, requires_grad=True)
    with t.autocast("cpu", t.bfloat16):
        y = t.utils.checkpoint.checkpoint(lambda x: x @ x, x, use_reentrant=False)
    y.float().sum().backward()
    return str(y.dtype)[-8:], x.grad


def check_with_closure(t):
    p = t.ones(2, dtype=t.float64, requires_grad=True)
    x = t.ones(2, dtype=t.float64, requires_grad=True)
    return t.autograd.gradcheck(lambda x: x * p, (x,))


def check_of_tangents_alone(t):
    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def jvp(ctx, tangent):
            return tangent * 2

    x = t.ones(2, dtype=t.float64, requires_grad=True)
    return t.autograd.gradcheck(Double.apply, (x,), check_forward_ad=True, check_backward_ad=False)


def edge(t):
    x = t.ones(1, requires_grad=True)
    y = x * 3
    return t.autograd.grad(y.sum(), t.autograd.graph.get_gradient_edge(x))[0]


def saved_and_written(t):
    x = t.full((1,), 3.0, requires_grad=True)
    with t.autograd.graph.allow_mutation_on_saved_tensors():
        y = x * 1
        z = y.square()
        y.mul_(2)
        z.sum().backward()
    return x.grad


takes("no_grad on a class", class_without_grad)
takes("Function with default arguments and setup_context", function_with_defaults, [3])
takes("Function with results that are no tensors", function_of_others, ([2], "name", 5))
takes("detect_anomaly(check_nan=False)", anomaly, [math.nan])
takes("hooks of AccumulateGrad", accumulate_hook, (["before", "after"], [2]))
takes("prehook of a node of several outputs", prehook_of_outputs, ([4], [1, 2, 0, 0]))
takes("inference_mode and views", inference_views, (True, True))
takes("set_ of a parameter in no_grad", set_of_parameter, ([0, 0, 0], True))
takes("checkpoint in autocast", checkpoint_in_autocast, ("bfloat16", [[4, 4], [4, 4]]))
takes("gradcheck with a parameter in a closure", check_with_closure, True)
takes("gradcheck of a Function with jvp alone", check_of_tangents_alone, True)
takes("GradientEdge", edge, [3])
takes("allow_mutation_on_saved_tensors", saved_and_written, [6])

# --- schedulers, optimizers, loaders ---


def chained(t):
    optimizer = t.optim.SGD([t.ones(1)], 1.0)
    first = t.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    both = t.optim.lr_scheduler.ChainedScheduler([first], optimizer)
    optimizer.step()
    both.step()
    return both.last_epoch, both.get_last_lr()[0]


def cyclic(t):
    groups = [{"params": [t.ones(1)]}, {"params": [t.ones(1)]}]
    optimizer = t.optim.SGD(groups, 0.1, momentum=0.9)
    t.optim.lr_scheduler.CyclicLR(
        optimizer, 0.1, 1.0, base_momentum=[0.7, 0.8], max_momentum=[0.9, 0.95]
    )
    return [group["momentum"] for group in optimizer.param_groups]


def line_search(t):
    x = t.nn.Parameter(t.full((1,), 4.0))
    optimizer = t.optim.LBFGS([x], tolerance_grad=-math.inf, max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = x.square().sum()
        loss.backward()
        return loss

    return optimizer.step(closure).item()


def lazy_norm(t):
    norm = t.nn.LazyBatchNorm1d(affine=False, track_running_stats=False)
    return norm(t.tensor([[1.0, 5.0], [3.0, 7.0]])), norm.weight is None


def after_an_error(t):
    class Some(t.utils.data.Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, i):
            if i == 1:
                raise ValueError(i)
            return i

    batches, found = iter(t.utils.data.DataLoader(Some(), batch_size=1)), []
    for _ in range(3):
        try:
            found.append(next(batches).item())
        except ValueError:
            found.append("error")
    return found


class Unseekable(io.RawIOBase):
    """What a socket gives: bytes one after the other."""

    def __init__(self, content):
        self.file = io.BytesIO(content)

    def readable(self):
        return True

    def readinto(self, buffer):
        return self.file.readinto(buffer)


def unseekable(t):
    file = io.BytesIO()
    t.save(t.ones(2), file)
    return t.load(Unseekable(file.getvalue()))


takes("ChainedScheduler.last_epoch", chained)
takes("CyclicLR's momentum of each group", cyclic, [0.9, 0.95])
takes("LBFGS(tolerance_grad=-inf)", line_search)
takes("a lazy norm without affine parameters", lazy_norm, ([[-1, -1], [1, 1]], True))
takes("DataLoader goes on after an exception", after_an_error, [0, "error", 2])
takes(
    "load from a stream that can't be sought",
    unseekable,
    [1, 1],
    deviation="`load` of a stream that can't be sought",
)

# --- gradients by the other operand; second passes; writes to what was not saved ---

OTHERS = {
    "div_": (lambda a, b: a.div_(b), -0.5),
    "pow_": (lambda a, b: a.pow_(b), 4 * math.log(2)),
    "xlogy_": (lambda a, b: a.xlogy_(b), 1.0),
    "lerp_": (lambda a, b: a.lerp_(b, 0.25), 0.25),
    "float_power_": (lambda a, b: a.float_power_(b), 4 * math.log(2)),
    "ldexp_": (lambda a, b: a.ldexp_(b), 8 * math.log(2)),
}
for _name, (_write, _slope) in OTHERS.items():

    def _other(t, write=_write):
        a, b = (
            t.tensor([2.0], dtype=t.float64),
            t.tensor([2.0], dtype=t.float64, requires_grad=True),
        )
        write(a, b).sum().backward()
        return b.grad

    takes(f"{_name} where the other alone requires grad", _other, [_slope])
TWICE = {
    "view": lambda t, x: x.view(2, 2),
    "reshape": lambda t, x: x.reshape(2, 2),
    "permute": lambda t, x: x.view(2, 2).permute(1, 0),
    "transpose": lambda t, x: x.view(2, 2).T,
    "expand": lambda t, x: x.expand(3, 4),
    "select": lambda t, x: x[1],
    "slice": lambda t, x: x[1:3],
    "squeeze": lambda t, x: x[None].squeeze(0),
    "unsqueeze": lambda t, x: x.unsqueeze(0),
    "add": lambda t, x: x + x,
    "sub": lambda t, x: x - 1,
    "neg": lambda t, x: -x,
    "sum": lambda t, x: x.sum(),
    "mean": lambda t, x: x.mean(),
    "cat": lambda t, x: t.cat([x, x]),
    "stack": lambda t, x: t.stack([x, x]),
    "clone": lambda t, x: x.clone(),
    "flip": lambda t, x: x.flip(0),
    "roll": lambda t, x: x.roll(1),
    "repeat": lambda t, x: x.repeat(2),
    "cumsum": lambda t, x: x.cumsum(0),
    "tril": lambda t, x: x.view(2, 2).tril(),
    "diagonal": lambda t, x: x.view(2, 2).diagonal(),
    "to": lambda t, x: x.to(t.float32),
    "pad": lambda t, x: F(t).pad(x, (1, 1)),
}
for _name, _op in TWICE.items():

    def _again(t, op=_op):
        x = t.arange(4.0, dtype=t.float64, requires_grad=True)
        total = op(t, x).sum()
        total.backward()
        first = x.grad.clone()
        total.backward()
        return t.equal(x.grad, 2 * first)

    takes(f"a second backward through {_name}", _again, True)


def shared_prefix(t):
    x = t.arange(3.0, requires_grad=True)
    prefix = x.view(3) + 1
    for loss in (prefix.square().sum(), prefix.exp().sum()):
        loss.backward()
    return x.grad


takes("two losses that share a prefix", shared_prefix, [2 + math.e, 4 + math.e**2, 6 + math.e**3])
for _name, _op in {
    "hardtanh": lambda t, x: F(t).hardtanh(x),
    "relu6": lambda t, x: F(t).relu6(x),
    "logaddexp": lambda t, x: t.logaddexp(x, x),
}.items():

    def _written(t, op=_op):
        x = t.tensor([0.5, 2.0], requires_grad=True)
        y = op(t, x)
        y.mul_(2)
        y.sum().backward()
        return x.grad

    takes(f"a write after {_name}", _written)

# --- the rest ---

takes("bfloat16 through DLPack", lambda t: t.from_dlpack(t.ones(2, dtype=t.bfloat16)), [1, 1])
takes("cumsum_ of bool", lambda t: t.tensor([True, True]).cumsum_(0), NotImplementedError)
takes("cumprod_ of bool", lambda t: t.tensor([True, False]).cumprod_(0), NotImplementedError)
takes(
    "einsum of empty bool",
    lambda t: t.einsum("ij,jk->ik", t.ones(2, 0, dtype=t.bool), t.ones(0, 1, dtype=t.bool)),
)
takes("softmax of empty bool", lambda t: shapes(t.ones(0, dtype=t.bool).softmax(0)))
takes("median() of none", lambda t: t.empty(0).median(), math.nan)
takes("take_along_dim, negative", lambda t: t.arange(3).take_along_dim(t.tensor([-1, 0]), 0))
takes(
    "cosine_similarity of numbers",
    lambda t: t.cosine_similarity(t.tensor(2.0), t.tensor(3.0), dim=0),
    1.0,
)
takes("alpha_dropout of a number", lambda t: F(t).alpha_dropout(t.tensor(2.0), 0.0), 2.0)
takes("vander of N=0", lambda t: shapes(t.vander(t.tensor([1.0, 2.0]), 0)), (2, 0))
takes(
    "batch_norm of [0, C, 3] in training",
    lambda t: shapes(F(t).batch_norm(t.ones(0, 2, 3), None, None, training=True)),
    (0, 2, 3),
)
for _shape in ((2, 1), (2,), (1,)):
    takes(
        f"GaussianNLLLoss with a variance of {_shape}",
        lambda t, s=_shape: t.nn.GaussianNLLLoss()(t.zeros(2, 3), t.ones(2, 3), t.ones(s)),
    )
takes(
    "gradient(spacing=None)",
    lambda t: t.gradient(t.tensor([1.0, 4.0, 9.0]), spacing=None)[0],
    [3, 4, 5],
)
takes("ormqr of wide", lambda t: shapes(t.ormqr(t.ones(2, 1), t.ones(1), t.ones(2, 3))), (2, 3))
takes("ormqr of empty", lambda t: shapes(t.ormqr(t.ones(0, 0), t.ones(0), t.ones(0, 3))), (0, 3))
takes("silu of complex", lambda t: F(t).silu(t.tensor([1 + 0j])), [1 / (1 + math.exp(-1))])
takes(
    "vmap of binary_cross_entropy",
    lambda t: t.func.vmap(F(t).binary_cross_entropy)(t.full((2, 1), 0.5), t.ones(2, 1)),
    [math.log(2)] * 2,
)
takes(
    "vmap of one_hot",
    lambda t: t.func.vmap(lambda x: F(t).one_hot(x, 2))(t.tensor([1, 0])),
    [[0, 1], [1, 0]],
)
takes(
    "vmap of bincount",
    lambda t: t.func.vmap(lambda x: t.bincount(x, minlength=2))(t.tensor([[1, 1], [0, 1]])),
)
takes("dropout2d of 2-D", lambda t: F(t).dropout2d(t.ones(2, 2), 0.0), [[1, 1], [1, 1]])
takes("gather with an empty float index", lambda t: shapes(t.ones(3).gather(0, t.empty(0))), (0,))
takes(
    "scatter with an empty float index", lambda t: t.ones(3).scatter(0, t.empty(0), 5.0), [1, 1, 1]
)
MASKED = ("sum", "prod", "mean", "amax", "amin", "argmax", "argmin", "var", "std", "norm", "cumsum", "cumprod",
    "softmax", "log_softmax", "softmin", "normalize", "median", "logsumexp", "logaddexp")  # fmt: skip
for _name in MASKED:

    def _masked(t, name=_name):
        x, mask = t.tensor([[1.0, 2.0, 4.0]]), t.tensor([[True, False, True]])
        if name == "logaddexp":
            return t.masked.logaddexp(x, x, input_mask=mask, other_mask=mask)[mask]
        order = (2.0,) if name in ("norm", "normalize") else ()
        result = getattr(t.masked, name)(x, *order, 1, mask=mask)
        return result[mask] if result.shape == mask.shape else result

    takes(f"masked.{_name}", _masked)
COPIES = {
    "expand_copy": lambda t, x: t.expand_copy(x, (2, 2, 2)),
    "alias_copy": lambda t, x: t.alias_copy(x),
    "view_copy": lambda t, x: t.view_copy(x, (4,)),
    "permute_copy": lambda t, x: t.permute_copy(x, (1, 0)),
    "transpose_copy": lambda t, x: t.transpose_copy(x, 0, 1),
    "select_copy": lambda t, x: t.select_copy(x, 0, 1),
    "slice_copy": lambda t, x: t.slice_copy(x, 0, 0, 1),
    "squeeze_copy": lambda t, x: t.squeeze_copy(x),
    "unsqueeze_copy": lambda t, x: t.unsqueeze_copy(x, 0),
    "diagonal_copy": lambda t, x: t.diagonal_copy(x),
    "t_copy": lambda t, x: t.t_copy(x),
    "detach_copy": lambda t, x: t.detach_copy(x),
    "as_strided_copy": lambda t, x: t.as_strided_copy(x, (2,), (1,)),
    "unfold_copy": lambda t, x: t.unfold_copy(x, 0, 1, 1),
}
for _name, _copy in COPIES.items():

    def _apart(t, copy=_copy):
        x = t.arange(4.0).reshape(2, 2)
        made = copy(t, x)
        values = made.clone()
        made.fill_(-1)
        return values, x

    takes(_name, _apart)
GRAPHS = {
    "frexp": lambda t, x: t.frexp(x)[0],
    "nextafter": lambda t, x: t.nextafter(x, x + 1),
    "matrix_power(A, 0)": lambda t, x: t.linalg.matrix_power(x, 0),
    "householder_product": lambda t, x: t.linalg.householder_product(x, x[0]),
}
for _name, _op in GRAPHS.items():

    def _required(t, op=_op):
        return op(t, t.tensor([[1.0, 0.5], [0.25, 1.0]], requires_grad=True)).requires_grad

    takes(f"graph of {_name}", _required)
takes(
    "bfloat16 to another by DLPack",
    lambda t: t.utils.dlpack.from_dlpack(t.utils.dlpack.to_dlpack(t.ones(1, dtype=t.bfloat16))),
    [1],
)
takes("np.asarray(x)", lambda t: np.asarray(t.arange(3)))
