"""Lazy modules, parametrisations, weights normalised by hooks, adaptive softmax."""

import copy
import pickle

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.nn.utils import parametrizations, parametrize, prune


def lazy(name, *args, **options):
    with pytest.warns(UserWarning, match="Lazy modules"):
        return getattr(nn, name)(*args, **options)


LAZY = [
    ("LazyLinear", (5,), (2, 3)),
    ("LazyConv1d", (4, 2), (2, 3, 6)),
    ("LazyConv2d", (4, 2), (2, 3, 6, 6)),
    ("LazyConv3d", (4, 2), (2, 3, 4, 4, 4)),
    ("LazyConvTranspose1d", (4, 2), (2, 3, 6)),
    ("LazyConvTranspose2d", (4, 2), (2, 3, 6, 6)),
    ("LazyConvTranspose3d", (4, 2), (2, 3, 4, 4, 4)),
    ("LazyBatchNorm1d", (), (2, 3, 6)),
    ("LazyBatchNorm2d", (), (2, 3, 6, 6)),
    ("LazyBatchNorm3d", (), (2, 3, 4, 4, 4)),
    ("LazyInstanceNorm1d", (), (2, 3, 6)),
    ("LazyInstanceNorm2d", (), (2, 3, 6, 6)),
    ("LazyInstanceNorm3d", (), (2, 3, 4, 4, 4)),
]


@pytest.mark.parametrize(("name", "args", "shape"), LAZY)
def test_lazy_module(name, args, shape):
    module = lazy(name, *args)
    assert module.has_uninitialized_params()
    assert all(isinstance(p, nn.UninitializedParameter) for p in module.parameters())
    with pytest.raises(RuntimeError, match="shape"):
        _ = next(module.parameters()).shape
    again = copy.deepcopy(module)
    module.double()
    output = module(tp.randn(*shape, dtype=tp.float64))
    assert type(module) is getattr(nn, name.removeprefix("Lazy"))
    assert output.dtype is tp.float64
    assert all(type(p) is nn.Parameter for p in module.parameters())
    usual = type(module)(3, *args)
    assert {k: tuple(v.shape) for k, v in module.state_dict().items()}.items() >= {
        k: tuple(v.shape) for k, v in usual.state_dict().items()
    }.items()
    # What was not called yet takes its shapes from a checkpoint.
    again.double().load_state_dict(module.state_dict())
    assert not again.has_uninitialized_params()
    again.train(False)
    module.train(False)
    input = tp.randn(*shape, dtype=tp.float64)
    assert again(input).tolist() == module(input).tolist()


def test_lazy_state_dict_round_trip():
    first, second = lazy("LazyLinear", 2), lazy("LazyLinear", 2)
    second.load_state_dict(first.state_dict())
    assert second.has_uninitialized_params()
    assert second(tp.ones(1, 3)).shape == (1, 2)


def test_uninitialized():
    parameter = nn.UninitializedParameter(dtype=tp.float64)
    assert repr(parameter) == "<UninitializedParameter>"
    parameter.materialize((2, 3))
    assert (type(parameter), tuple(parameter.shape), parameter.dtype) == (
        nn.Parameter, (2, 3), tp.float64,
    )  # fmt: skip
    assert parameter.requires_grad
    buffer = nn.UninitializedBuffer()
    buffer.materialize((4,))
    assert type(buffer) is nn.Buffer
    again = pickle.loads(pickle.dumps(nn.UninitializedParameter(requires_grad=False)))
    assert isinstance(again, nn.UninitializedParameter)
    assert not again.requires_grad


X = tp.ones(2, 3)
IMAGE = tp.ones(1, 3, 4, 4)
COMPUTING = {
    "add": lambda p: p + 1,
    "add a tensor": lambda p: X + p,
    "add itself": lambda p: p + p,
    "right operand": lambda p: 2**p,
    "comparison": lambda p: p == X,
    "one argument": lambda p: tp.exp(p),
    "reduction": lambda p: p.sum(),
    "matmul": lambda p: X @ p,
    "linear": lambda p: nn.functional.linear(X, p),
    "convolution": lambda p: nn.functional.conv2d(IMAGE, p),
    "batch_norm": lambda p: nn.functional.batch_norm(IMAGE, p, p),
    "layer_norm": lambda p: nn.functional.layer_norm(X, (3,), p),
    "embedding": lambda p: nn.functional.embedding(tp.tensor([0]), p),
    "attention": lambda p: nn.functional.scaled_dot_product_attention(p, p, p),
    "loss": lambda p: nn.functional.mse_loss(X, p),
    "cat": lambda p: tp.cat([X, p]),
    "stack": lambda p: tp.stack([p]),
    "where": lambda p: tp.where(X > 0, X, p),
    "view": lambda p: p.view(-1),
    "transpose": lambda p: p.T,
    "index": lambda p: p[0],
    "index assignment": lambda p: p.__setitem__(0, 1.0),
    "in-place": lambda p: p.zero_(),
    "written into another": lambda p: X.copy_(p),
    "added to another": lambda p: X.add_(p),
    "out": lambda p: tp.add(X, 1, out=p.requires_grad_(False)),
    "initialiser": lambda p: nn.init.normal_(p),
    "like": lambda p: tp.zeros_like(p),
    "clone": lambda p: p.clone(),
    "detach": lambda p: p.detach(),
    "conversion": lambda p: p.to(tp.float64),
    "numpy": lambda p: p.numpy(),
    "item": lambda p: p.item(),
    "iteration": lambda p: list(p),
    "numel": lambda p: p.numel(),
    "decomposition": lambda p: tp.linalg.qr(p),
    "vector": lambda p: nn.utils.parameters_to_vector([p]),
    "vmap": lambda p: tp.vmap(lambda x: 2 * x)(p),
}


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("cls", [nn.UninitializedParameter, nn.UninitializedBuffer])
@pytest.mark.parametrize("compute", COMPUTING.values(), ids=COMPUTING)
def test_computing_with_what_has_no_shape_raises(compute, cls, grad, device):
    value = cls(device=device)
    with tp.set_grad_enabled(grad), pytest.raises(ValueError, match=r"uninitialized parameter"):
        compute(value)
    assert X.tolist() == [[1.0] * 3] * 2
    assert repr(value) == f"<{cls.__name__}>"
    value.materialize((2, 3))
    assert (value.data + 1).shape == (2, 3)


def test_what_can_be_asked_of_an_uninitialized_parameter():
    parameter = nn.UninitializedParameter(dtype=tp.float64)
    assert parameter.device == tp.device("cpu")
    assert (parameter.dtype, parameter.is_leaf, parameter.grad) == (tp.float64, True, None)
    assert parameter.is_floating_point()
    assert {parameter: 1}[parameter] == 1
    assert nn.UninitializedParameter(device="meta").device == tp.device("meta")


@pytest.mark.parametrize("name", [name for name in dir(nn) if name.startswith("Lazy")])
def test_lazy_modules_are_made_where_a_context_says(name):
    arguments = {"Linear": (2,), "Conv": (2, 3)}
    with tp.device("meta"):
        module = lazy(name, *next((args for kind, args in arguments.items() if kind in name), ()))
    made = [*module.parameters(), *module.buffers()]
    assert all(tensor.is_meta and tensor.device.type == "meta" for tensor in made)


def test_lazy_module_moves():
    module = lazy("LazyBatchNorm1d").to(tp.float64).to("meta")
    assert {(p.dtype, str(p.device)) for p in (*module.parameters(), module.running_mean)} == {
        (tp.float64, "meta")
    }
    module.to_empty(device="cpu").float()
    assert module.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="Can't share memory"):
        nn.Sequential(module).share_memory()
    assert module(tp.ones(2, 3)).dtype is tp.float32


def test_an_op_registered_later_raises_too():
    from tensorplug.core.dispatch.keys import all_keys, ops, reset_tables

    parameter = nn.UninitializedParameter()
    reset_tables()
    with pytest.raises(ValueError, match="uninitialized"):
        parameter.exp()
    assert {len(kind.kernels) for kind in all_keys()} == {len(ops)}


def test_lazy_module_of_wrong_input():
    module = lazy("LazyConv2d", 4, 2)
    with pytest.raises(RuntimeError, match="Expected 3D"):
        module(tp.ones(2))


# --- parametrisations ---------------------------------------------------------------------------


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

    def right_inverse(self, x):
        return x.triu()


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x


def test_parametrized_tensor_is_computed_and_assigned():
    layer = nn.Linear(3, 3)
    same = parametrize.register_parametrization(layer, "weight", Symmetric())
    assert same is layer
    assert isinstance(layer, nn.Linear)
    assert parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias")
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert bool((layer.weight == layer.weight.t()).all())
    layer(tp.ones(2, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None
    wanted = tp.ones(3, 3) * 2
    layer.weight = wanted
    assert layer.weight.tolist() == wanted.tolist()


def test_several_parametrizations_apply_in_turn():
    layer = nn.Linear(2, 2)
    before = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Doubled())
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight.tolist() == (before * 4).tolist()
    parametrize.register_parametrization(layer, "bias", Doubled())
    parametrize.remove_parametrizations(layer, "bias", leave_parametrized=False)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert layer.weight.tolist() == (before * 4).tolist()
    assert isinstance(layer.weight, nn.Parameter)


def test_cached_tensors_are_computed_once():
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert layer.weight is not layer.weight
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight


def test_copy_of_a_parametrized_module():
    layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    other = copy.deepcopy(layer)
    assert other.weight.tolist() == layer.weight.tolist()
    other.parametrizations.weight.original.data.fill_(0.0)
    assert other.weight.abs().sum().item() == 0.0
    assert layer.weight.abs().sum().item() > 0.0
    with pytest.raises(RuntimeError, match="state_dict"):
        pickle.dumps(layer)


def test_transfer():
    layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    other = nn.Linear(3, 3)
    parametrize.transfer_parametrizations_and_params(layer, other)
    assert other.weight.tolist() == layer.weight.tolist()


class Smaller(nn.Module):
    def forward(self, x):
        return x[:1]


def test_bad_parametrizations():
    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(layer, "missing", Doubled())
    with pytest.raises(ValueError, match="shape"):
        parametrize.register_parametrization(layer, "weight", Smaller())
    assert type(layer) is nn.Linear
    parametrize.register_parametrization(layer, "weight", Smaller(), unsafe=True)
    assert layer.weight.shape == (1, 2)
    parametrize.register_parametrization(layer, "bias", Doubled())
    with pytest.raises(RuntimeError, match="right_inverse"):
        layer.bias = tp.ones(2)
    with pytest.raises(ValueError, match="does not have a parametrization"):
        parametrize.remove_parametrizations(nn.Linear(2, 2), "weight")


def load(ours, theirs):
    ours.double().load_state_dict(
        {k: tp.tensor(v.tolist(), dtype=tp.float64) for k, v in theirs.state_dict().items()}
    )


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("form", ["parametrizations", "hooks"])
def test_weight_norm(compare, dim, form):
    import torch

    if form == "hooks":
        with pytest.warns(FutureWarning, match="deprecated"):
            theirs = torch.nn.utils.weight_norm(torch.nn.Linear(4, 3).double(), dim=dim)
        ours = nn.utils.weight_norm(nn.Linear(4, 3).double(), dim=dim)
    else:
        theirs = torch.nn.utils.parametrizations.weight_norm(
            torch.nn.Linear(4, 3).double(), dim=dim
        )
        ours = parametrizations.weight_norm(nn.Linear(4, 3).double(), dim=dim)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    load(ours, theirs)
    compare(ours, theirs, torch.randn(2, 4, dtype=torch.float64, requires_grad=True))
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert a.grad.flatten().tolist() == pytest.approx(b.grad.flatten().tolist(), rel=1e-10)


TYING = {
    "weight_norm": lambda m: parametrizations.weight_norm(m).parametrizations.weight.original1,
    "orthogonal": lambda m: parametrizations.orthogonal(m).parametrizations.weight.original,
    "spectral_norm": lambda m: parametrizations.spectral_norm(m).parametrizations.weight.original,
    "hooked weight_norm": lambda m: nn.utils.weight_norm(m).weight_v,
    "hooked spectral_norm": lambda m: nn.utils.spectral_norm(m).weight_orig,
    "pruning": lambda m: prune.l1_unstructured(m, "weight", 0.3).weight_orig,
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", TYING)
def test_a_weight_that_two_modules_share_stays_shared(name):
    one, two = nn.Linear(3, 3), nn.Linear(3, 3)
    two.weight = one.weight
    original = TYING[name](two)
    assert original.data_ptr() == one.weight.data_ptr()
    with tp.no_grad():
        one.weight.mul_(2)
    assert tp.equal(original, one.weight)


def test_weight_norm_does_not_change_the_weight():
    layer = nn.Linear(4, 3).double()
    before = layer.weight.detach().clone()
    parametrizations.weight_norm(layer)
    assert layer.weight.flatten().tolist() == pytest.approx(before.flatten().tolist())
    old = nn.utils.weight_norm(nn.Linear(4, 3).double())
    layer.load_state_dict(old.state_dict())  # the older form's checkpoint
    assert layer.weight.flatten().tolist() == pytest.approx(old.weight.flatten().tolist())
    nn.utils.remove_weight_norm(old)
    assert list(old.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="not found"):
        nn.utils.remove_weight_norm(old)


@pytest.mark.parametrize("form", ["parametrizations", "hooks"])
@pytest.mark.parametrize("training", [True, False])
def test_spectral_norm(compare, form, training):
    import torch

    if form == "hooks":
        theirs = torch.nn.utils.spectral_norm(torch.nn.Linear(4, 3).double())
        ours = nn.utils.spectral_norm(nn.Linear(4, 3).double())
    else:
        theirs = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(4, 3).double())
        ours = parametrizations.spectral_norm(nn.Linear(4, 3).double())
    assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
    load(ours, theirs)
    ours.train(training)
    theirs.train(training)
    compare(ours, theirs, torch.randn(2, 4, dtype=torch.float64, requires_grad=True))
    for (_, a), (_, b) in zip(
        sorted(ours.named_parameters()), sorted(theirs.named_parameters()), strict=True
    ):
        assert a.grad.flatten().tolist() == pytest.approx(b.grad.flatten().tolist(), rel=1e-9)


def test_spectral_norm_bounds_the_largest_singular_value():
    tp.manual_seed(0)
    layer = parametrizations.spectral_norm(nn.Linear(6, 5).double(), n_power_iterations=50)
    layer(tp.ones(1, 6, dtype=tp.float64))
    assert tp.linalg.svdvals(layer.weight.detach())[0].item() == pytest.approx(1.0, rel=1e-3)
    transposed = parametrizations.spectral_norm(nn.ConvTranspose1d(2, 3, 2))
    assert transposed.parametrizations.weight[0]._u.shape == (3,)
    old = nn.utils.spectral_norm(nn.Linear(4, 3))
    nn.utils.remove_spectral_norm(old)
    assert sorted(old.state_dict()) == ["bias", "weight"]


@pytest.mark.parametrize("dtype", [tp.float64, tp.complex128], ids=str)
@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("dim", [0, 1, -1, None])
def test_weight_norm_is_by_real_norms(dtype, old, dim):
    tp.manual_seed(0)
    layer = nn.Linear(4, 3, dtype=dtype)
    given = layer.weight.detach().clone()
    (nn.utils.weight_norm if old else parametrizations.weight_norm)(layer, dim=dim)
    assert (layer.weight - given).abs().max().item() < 1e-12
    values = dict(layer.named_parameters())
    names = (
        ("weight_g", "weight_v")
        if old
        else ("parametrizations.weight.original0", "parametrizations.weight.original1")
    )
    length, direction = (values[name] for name in names)
    kept = {0: (3, 1), 1: (1, 4)}.get(dim, ())
    axis = None if dim in (-1, None) else 1 - dim
    expected = np.linalg.norm(given.numpy(), axis=axis, keepdims=axis is not None)
    assert length.dtype is tp.float64
    assert tuple(length.shape) == kept
    assert np.allclose(length.detach().numpy(), expected, rtol=1e-12)
    layer(tp.ones(2, 4, dtype=dtype)).abs().sum().backward()
    # The direction's own length does not count.
    along = (direction.grad.conj() * direction.detach()).real.sum()
    assert abs(along.item()) < 1e-10


@pytest.mark.parametrize("dtype", [tp.float64, tp.complex128], ids=str)
@pytest.mark.parametrize("old", [True, False])
def test_spectral_norm_is_that_of_complex_weights(dtype, old):
    tp.manual_seed(0)
    normed = nn.utils.spectral_norm if old else parametrizations.spectral_norm
    layer = normed(nn.Linear(6, 5, dtype=dtype), n_power_iterations=80)
    layer(tp.ones(1, 6, dtype=dtype))
    assert tp.linalg.svdvals(layer.weight.detach())[0].item() == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("map", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("size", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal(compare, map, size, trivial):
    import torch

    theirs = torch.nn.utils.parametrizations.orthogonal(
        torch.nn.Linear(*size).double(), orthogonal_map=map, use_trivialization=trivial
    )
    tp.manual_seed(0)
    ours = parametrizations.orthogonal(
        nn.Linear(*size).double(), orthogonal_map=map, use_trivialization=trivial
    )
    weight = ours.weight.detach()
    narrow = weight if weight.shape[0] <= weight.shape[1] else weight.t()
    identity = tp.eye(narrow.shape[0], dtype=tp.float64)
    assert (narrow @ narrow.t() - identity).abs().max().item() < 1e-10
    assert list(ours.state_dict()) == list(theirs.state_dict())
    load(ours, theirs)
    compare(
        ours, theirs, torch.randn(2, size[0], dtype=torch.float64, requires_grad=True), rtol=1e-9
    )
    original = ours.parametrizations.weight.original
    expected = theirs.parametrizations.weight.original.grad
    assert original.grad.flatten().tolist() == pytest.approx(
        expected.flatten().tolist(), rel=1e-8, abs=1e-10
    )


@pytest.mark.parametrize("dtype", [tp.float64, tp.complex128], ids=str)
@pytest.mark.parametrize("map", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("size", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal_weight_is_that_of_qr(dtype, map, size, trivial):
    """At first and after each assignment it is Q, where R's diagonal is positive."""
    tp.manual_seed(0)
    layer = nn.Linear(*size, dtype=dtype)
    if map == "householder" and dtype.is_complex:
        with pytest.raises(ValueError, match="does not support complex"):
            parametrizations.orthogonal(layer, orthogonal_map=map, use_trivialization=trivial)
        return
    given = layer.weight.detach().clone()
    parametrizations.orthogonal(layer, orthogonal_map=map, use_trivialization=trivial)
    if not trivial and map != "householder":
        with pytest.raises(NotImplementedError, match="not possible to assign"):
            layer.weight = given
        return
    for matrix in (given, tp.randn_like(given)):
        if matrix is not given:
            layer.weight = matrix
        wide = matrix.shape[0] < matrix.shape[1]
        q, r = tp.linalg.qr(matrix.t() if wide else matrix)
        q = q * r.diagonal().sgn()
        assert (layer.weight - (q.t() if wide else q)).abs().max().item() < 1e-10


def test_orthogonal_weight_can_be_assigned():
    tp.manual_seed(0)
    layer = parametrizations.orthogonal(nn.Linear(4, 4).double())
    q = tp.linalg.qr(tp.randn(4, 4, dtype=tp.float64))[0]
    layer.weight = q
    assert (layer.weight - q).abs().max().item() < 1e-10
    with pytest.raises(ValueError, match="orthogonal_map"):
        parametrizations.orthogonal(nn.Linear(4, 4), orthogonal_map="x")
    with pytest.raises(ValueError, match="matrix"):
        parametrizations.orthogonal(nn.Linear(4, 4), "bias")


# --- adaptive softmax -----------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
def test_adaptive_softmax(compare, bias):
    import torch

    input = torch.randn(7, 16, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0, 5, 11, 19, 3, 4, 10])
    options = {"div_value": 2.0, "head_bias": bias}
    ours = compare.module("AdaptiveLogSoftmaxWithLoss", ((16, 20, [4, 10]), options), input, target)
    compare.module(
        "AdaptiveLogSoftmaxWithLoss", ((16, 20, [4, 10]), options), input[0].detach(), target[1]
    )
    x = tp.randn(3, 16, dtype=tp.float64)
    assert ours.log_prob(x).exp().sum(1).tolist() == pytest.approx([1.0] * 3)
    assert ours.predict(x).tolist() == ours.log_prob(x).argmax(1).tolist()
    with pytest.raises(ValueError, match="cutoffs"):
        nn.AdaptiveLogSoftmaxWithLoss(16, 20, [10, 4])
    with pytest.raises(RuntimeError, match="Target values"):
        ours(x, tp.tensor([0, 1, 20]))


@pytest.mark.parametrize("count", [2, 3])
def test_fractional_pooling_module(compare, count):
    import torch

    samples = torch.rand(2, 3, count, dtype=torch.float64)
    input = torch.randn(2, 3, *(8, 9, 7)[:count], dtype=torch.float64, requires_grad=True)
    options = {"output_size": 4, "return_indices": True, "_random_samples": samples}
    compare.module(f"FractionalMaxPool{count}d", ((2,), options), input)
    with pytest.raises(ValueError, match="output"):
        nn.FractionalMaxPool2d(2)
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.FractionalMaxPool2d(2, output_ratio=1.5)
