"""tp.func: transforms alone and composed, modules as functions, per-sample gradients; against torch."""

from __future__ import annotations

import pytest

import tensorplug as tp
from tensorplug.autograd.transforms.pytree import tree_leaves

torch = pytest.importorskip("torch", reason="compares with torch")
from torch.utils import _pytree as theirs  # noqa: E402

pytestmark = [  # torch's own warnings
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node:UserWarning"),
]


def vector(L):
    return L.tensor([0.5, 1.5, -0.3], dtype=L.float64)


def matrix(L):
    return L.stack([vector(L), vector(L) * 2, vector(L) + 1])


def scalar(x):
    return (x.exp() * x.sin()).sum() + x.prod()


def outputs(L):
    return lambda x: L.stack([x.exp().sum(), (x * x).prod(), x.sin().dot(x)])


CALLS = {
    "grad": lambda L, F: F.grad(scalar)(vector(L)),
    "grad and value": lambda L, F: F.grad_and_value(scalar)(vector(L)),
    "aux": lambda L, F: F.grad(lambda x: (scalar(x), x * 2), has_aux=True)(vector(L)),
    "value and aux": lambda L, F: F.grad_and_value(lambda x: (scalar(x), {"a": x}), has_aux=True)(
        vector(L)
    ),
    "argnums": lambda L, F: F.grad(lambda x, y: (x * y * y).sum(), argnums=(0, -1))(
        vector(L), vector(L)
    ),
    "tree": lambda L, F: F.grad(lambda d: (d["a"] * d["b"][0]).sum())(
        {"a": vector(L), "b": [vector(L)]}
    ),
    "grad of grad": lambda L, F: F.grad(lambda x: F.grad(scalar)(x).sin().sum())(vector(L)),
    "grad of grad of grad": lambda L, F: F.grad(
        lambda x: F.grad(lambda x: F.grad(scalar)(x).sin().sum())(x).prod()
    )(vector(L)),
    "jacrev": lambda L, F: F.jacrev(outputs(L))(vector(L)),
    "jacfwd": lambda L, F: F.jacfwd(outputs(L))(vector(L)),
    "jacrev in chunks": lambda L, F: F.jacrev(outputs(L), chunk_size=2)(vector(L)),
    "jacrev argnums": lambda L, F: F.jacrev(lambda x, y: (x * y, x.sum()), argnums=(0, 1))(
        vector(L), vector(L)
    ),
    "jacfwd argnums": lambda L, F: F.jacfwd(lambda x, y: (x * y, x.sum()), argnums=(0, 1))(
        vector(L), vector(L)
    ),
    "jacfwd aux": lambda L, F: F.jacfwd(lambda x: (x * x, x.exp()), has_aux=True)(vector(L)),
    "jacrev aux": lambda L, F: F.jacrev(lambda x: (x * x, x.exp()), has_aux=True)(vector(L)),
    "jacrev of dict": lambda L, F: F.jacrev(lambda x: {"a": x * x, "b": x.sum()})(vector(L)),
    "hessian": lambda L, F: F.hessian(scalar)(vector(L)),
    "jacrev of jacrev": lambda L, F: F.jacrev(F.jacrev(outputs(L)))(vector(L)),
    "jacfwd of jacfwd": lambda L, F: F.jacfwd(F.jacfwd(outputs(L)))(vector(L)),
    "jacrev of jacfwd": lambda L, F: F.jacrev(F.jacfwd(outputs(L)))(vector(L)),
    "jacfwd of hessian": lambda L, F: F.jacfwd(F.hessian(scalar))(vector(L)),
    "hessian of hessian": lambda L, F: F.hessian(lambda x: F.hessian(scalar)(x).sum())(vector(L)),
    "vjp": lambda L, F: F.vjp(outputs(L), vector(L))[1](vector(L)),
    "vjp aux": lambda L, F: F.vjp(lambda x: (x * 2, x.exp()), vector(L), has_aux=True)[2],
    "vjp of two": lambda L, F: F.vjp(lambda x, y: {"a": x * y}, vector(L), vector(L))[1](
        {"a": vector(L)}
    ),
    "jvp": lambda L, F: F.jvp(outputs(L), (vector(L),), (vector(L) * 2,)),
    "jvp aux": lambda L, F: F.jvp(
        lambda x: (x * 2, x.exp()), (vector(L),), (vector(L),), has_aux=True
    ),
    "jvp of jvp": lambda L, F: F.jvp(
        lambda x: F.jvp(outputs(L), (x,), (x * x,))[1], (vector(L),), (vector(L),)
    ),
    "jvp of grad": lambda L, F: F.jvp(F.grad(scalar), (vector(L),), (vector(L),)),
    "grad of jvp": lambda L, F: F.grad(lambda x: F.jvp(outputs(L), (x,), (x * x,))[1].sum())(
        vector(L)
    ),
    "jvp of nothing": lambda L, F: F.jvp(lambda x: L.ones(2), (vector(L),), (vector(L),)),
    "linearize": lambda L, F: F.linearize(outputs(L), vector(L))[1](vector(L) * 3),
    "linearize output": lambda L, F: F.linearize(outputs(L), vector(L))[0],
    "vmap of grad": lambda L, F: F.vmap(F.grad(scalar))(matrix(L)),
    "vmap of hessian": lambda L, F: F.vmap(F.hessian(scalar))(matrix(L)),
    "vmap of jacrev": lambda L, F: F.vmap(F.jacrev(outputs(L)))(matrix(L)),
    "vmap of jacfwd": lambda L, F: F.vmap(F.jacfwd(outputs(L)))(matrix(L)),
    "vmap of vjp": lambda L, F: F.vmap(lambda x, v: F.vjp(outputs(L), x)[1](v))(
        matrix(L), matrix(L)
    ),
    "vmap over vjp": lambda L, F: F.vmap(F.vjp(outputs(L), vector(L))[1])(matrix(L)),
    "vmap of jvp": lambda L, F: F.vmap(lambda v: F.jvp(outputs(L), (vector(L),), (v,))[1])(
        matrix(L)
    ),
    "vmap of vmap of grad": lambda L, F: F.vmap(F.vmap(F.grad(lambda x: x.sin() * x)))(matrix(L)),
    "vmap with shared": lambda L, F: F.vmap(
        F.grad(lambda w, x: (w * x).exp().sum()), in_dims=(None, 0)
    )(vector(L), matrix(L)),
    "grad of vmap": lambda L, F: F.grad(lambda x: F.vmap(scalar)(x).prod())(matrix(L)),
    "grad of vmap of grad": lambda L, F: F.grad(lambda x: F.vmap(F.grad(scalar))(x).sin().sum())(
        matrix(L)
    ),
    "jacrev of vmap": lambda L, F: F.jacrev(F.vmap(outputs(L)))(matrix(L)),
    "jacfwd of vmap": lambda L, F: F.jacfwd(F.vmap(outputs(L)))(matrix(L)),
    "jvp of vmap": lambda L, F: F.jvp(F.vmap(outputs(L)), (matrix(L),), (matrix(L),)),
    "perturbations": lambda L, F: F.grad(lambda x: (x * F.grad(lambda y: (x * y).sum())(x)).sum())(
        vector(L)
    ),
    "perturbations forward": lambda L, F: F.jvp(
        lambda x: x * F.jvp(lambda y: x * y, (x,), (L.ones_like(x),))[1],
        (vector(L),),
        (vector(L),),
    ),
    "no_grad outside": lambda L, F: L.no_grad()(F.grad(scalar))(vector(L)),
    "no_grad inside": lambda L, F: F.grad(lambda x: scalar(x) + no_grad(L, x))(vector(L)),
    "in place": lambda L, F: F.grad(lambda x: x.clone().mul_(x).sum())(vector(L)),
    "jacrev of complex": lambda L, F: F.jacrev(lambda x: x * x)(L.tensor([1 + 2j])),
    "jacfwd of complex": lambda L, F: F.jacfwd(lambda x: x * x)(L.tensor([1 + 2j])),
    "jacrev to complex": lambda L, F: F.jacrev(lambda x: x * 1j)(vector(L)),
    "jacfwd to complex": lambda L, F: F.jacfwd(lambda x: x * 1j)(vector(L)),
    "not scalar": lambda L, F: F.grad(lambda x: x)(vector(L)),
    "number": lambda L, F: F.grad(lambda x: 3)(vector(L)),
    "tuple": lambda L, F: F.grad(lambda x: (x.sum(), 1))(vector(L)),
    "no aux": lambda L, F: F.grad(lambda x: x.sum(), has_aux=True)(vector(L)),
    "of a number": lambda L, F: F.grad(lambda x: x.sum())(3),
    "no such argument": lambda L, F: F.grad(scalar, argnums=1)(vector(L)),
    "argnums of text": lambda L, F: F.grad(scalar, argnums="a")(vector(L)),
    "argnums twice": lambda L, F: F.jacrev(scalar, argnums=(0, 0))(vector(L)),
    "integers": lambda L, F: F.grad(lambda x: x.sum())(L.tensor([1, 2])),
    "jvp shapes": lambda L, F: F.jvp(lambda x: x, (vector(L),), (L.ones(2),)),
    "jvp no tuple": lambda L, F: F.jvp(lambda x: x, vector(L), vector(L)),
    "jvp structure": lambda L, F: F.jvp(lambda x: x, (vector(L),), (vector(L), vector(L))),
    "jvp number": lambda L, F: F.jvp(lambda x: 3, (vector(L),), (vector(L),)),
    "vjp number": lambda L, F: F.vjp(lambda x: 3, vector(L)),
    "vjp shape": lambda L, F: F.vjp(lambda x: x * 2, vector(L))[1](L.ones(2)),
    "jacfwd randomness": lambda L, F: F.jacfwd(scalar, randomness="a")(vector(L)),
}


def no_grad(L, x):
    with L.no_grad():
        return scalar(x)


@pytest.mark.parametrize("name", CALLS)
def test_as_torch(name):
    results = []
    for L, F, leaves in (
        (torch, torch.func, theirs.tree_leaves),
        (tp, tp.func, tree_leaves),
    ):
        try:
            found = leaves(CALLS[name](L, F))
            results.append([(tuple(t.shape), t.tolist(), t.requires_grad) for t in found])
        except Exception as error:
            results.append((type(error).__name__, str(error)))
    expected, got = results
    if isinstance(expected, tuple):
        assert isinstance(got, tuple), got
        assert got[0] == expected[0], got
        return
    assert isinstance(got, list), got
    for (shape, numbers, recorded), own in zip(expected, got, strict=True):
        assert own[0] == shape
        assert own[2] == recorded
        assert torch.allclose(torch.tensor(own[1]), torch.tensor(numbers))


def test_results_join_the_graph_outside():
    w = tp.tensor([1.0, 2.0], requires_grad=True)
    x = tp.tensor([3.0, 4.0])
    found = tp.func.grad(lambda x: (x * x * w).sum())(x)
    assert found.requires_grad
    found.sum().backward()
    assert w.grad.tolist() == [6, 8]
    x.requires_grad_()
    found, value = tp.func.grad_and_value(lambda x: (x**3).sum())(x)
    (second,) = tp.autograd.grad(found.sum() + value, x)
    assert tp.allclose(second, 6 * x.detach() + 3 * x.detach() ** 2)
    assert not tp.func.grad(lambda x: (x * x).sum())(x.detach()).requires_grad


# --- modules ----------------------------------------------------------------------------------


def network(L):
    return L.nn.Sequential(L.nn.Linear(4, 5), L.nn.Tanh(), L.nn.Linear(5, 3))


def same_state(model, other):
    for own, its in zip(model.parameters(), other.parameters(), strict=True):
        with tp.no_grad():
            own.copy_(tp.tensor(its.tolist()))


def test_per_sample_gradients():
    theirs, ours = network(torch), network(tp)
    same_state(ours, theirs)
    rows = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)).tolist()
    labels = [0, 1, 2, 2, 1, 0]
    found = []
    for L, model in ((torch, theirs), (tp, ours)):
        state = {name: p.detach() for name, p in model.named_parameters()}

        def loss(state, x, y, L=L, model=model):
            out = L.func.functional_call(model, state, (x[None],))
            return L.nn.functional.cross_entropy(out, y[None])

        each = L.func.vmap(L.func.grad(loss), in_dims=(None, 0, 0))
        found.append(each(state, L.tensor(rows), L.tensor(labels)))
    for name, expected in found[0].items():
        got = found[1][name]
        assert tuple(got.shape) == tuple(expected.shape)
        assert torch.allclose(torch.tensor(got.tolist()), expected, atol=1e-6)
    for number in range(6):
        ours.zero_grad()
        out = ours(tp.tensor(rows[number])[None])
        tp.nn.functional.cross_entropy(out, tp.tensor([labels[number]])).backward()
        for name, parameter in ours.named_parameters():
            assert tp.allclose(found[1][name][number], parameter.grad, atol=1e-6)


def test_per_sample_gradients_of_a_convolution():
    tp.manual_seed(0)
    model = tp.nn.Sequential(
        tp.nn.Conv2d(2, 3, 3, padding=1), tp.nn.ReLU(), tp.nn.MaxPool2d(2), tp.nn.Flatten(),
        tp.nn.LayerNorm(27), tp.nn.Linear(27, 2),
    )  # fmt: skip
    state = {name: p.detach() for name, p in model.named_parameters()}
    x = tp.randn(4, 2, 6, 6)

    def loss(state, x):
        return tp.func.functional_call(model, state, (x[None],)).square().sum()

    found = tp.vmap(tp.func.grad(loss), in_dims=(None, 0))(state, x)
    for number in range(4):
        model.zero_grad()
        model(x[number][None]).square().sum().backward()
        for name, parameter in model.named_parameters():
            assert tp.allclose(found[name][number], parameter.grad, rtol=1e-4, atol=1e-5), name


def test_functional_call():
    model = tp.nn.Linear(2, 2)
    before = model.weight
    state = {"weight": tp.ones(2, 2), "bias": tp.zeros(2)}
    out = tp.func.functional_call(model, state, tp.tensor([[1.0, 2.0]]))
    assert out.tolist() == [[3, 3]]
    assert model.weight is before
    only = tp.func.functional_call(model, {"bias": tp.zeros(2)}, tp.ones(1, 2))
    assert tp.allclose(only, tp.ones(1, 2) @ before.T)
    with pytest.raises(
        RuntimeError, match=r"(?s)Unexpected key\(s\): 'zz'.*Missing key\(s\): 'bias'"
    ):
        tp.func.functional_call(model, {"weight": tp.ones(2, 2), "zz": out}, out, strict=True)
    with pytest.raises(ValueError, match=r"\[.*\] appeared in multiple dictionaries"):
        tp.func.functional_call(model, (state, state), out)
    norm = tp.nn.BatchNorm1d(2)
    buffers = {name: b.clone() for name, b in norm.named_buffers()}
    kept = norm.running_mean.clone()
    tp.func.functional_call(norm, buffers, tp.ones(4, 2) * 3)
    assert tp.equal(norm.running_mean, kept)
    assert buffers["running_mean"].tolist() == pytest.approx([0.3, 0.3])


@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm", "orthogonal"])
def test_functional_call_with_a_parametrized_weight_itself(norm):
    """What is given stands for the parametrization's result, and gets the gradient."""
    model = tp.nn.Sequential(tp.nn.Linear(2, 2)).eval()
    getattr(tp.nn.utils.parametrizations, norm)(model[0])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    weight = tp.tensor([[0.0, 1.0], [3.0, 0.0]], requires_grad=True)
    state = {"0.weight": weight, "0.bias": tp.zeros(2)}
    out = tp.func.functional_call(model, state, tp.tensor([[1.0, 2.0]]))
    assert out.tolist() == [[2, 3]]
    out.sum().backward()
    assert weight.grad.tolist() == [[1, 2], [1, 2]]
    assert all(tp.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not tp.equal(model(tp.tensor([[1.0, 2.0]])), out)


def test_functional_call_of_properties():
    class Doubled(tp.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = tp.nn.Parameter(tp.ones(2))

        @property
        def whole(self):
            return self.part * 2

        @whole.setter
        def whole(self, value):
            self.part = tp.nn.Parameter(value / 2)

        @property
        def fixed(self):
            return self.part * 3

        def forward(self, x):
            return x * self.whole

    model = Doubled()
    six = tp.full((2,), 6.0)
    assert tp.func.functional_call(model, {"whole": six}, tp.ones(2)).tolist() == [6, 6]
    assert model.part.tolist() == [1, 1]
    with pytest.raises(AttributeError, match="fixed"):
        tp.func.functional_call(model, {"fixed": six}, tp.ones(2))


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("", KeyError, "empty string"),
        ("0.", KeyError, "empty string"),
        ("1.weight", AttributeError, "has no attribute `1`"),
        (
            "0.weight.x",
            TypeError,
            "(?s)submodule `0.weight`: .* is not an instance of torch.nn.Module",
        ),
    ],
)
def test_functional_call_with_names_of_nothing(name, error, text):
    model = tp.nn.Sequential(tp.nn.Linear(2, 2))
    with pytest.raises(error, match=text):
        tp.func.functional_call(model, {name: tp.ones(2, 2)}, tp.ones(1, 2))


def test_tied_weights():
    model = tp.nn.Sequential(tp.nn.Linear(2, 2, bias=False), tp.nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    x = tp.tensor([[1.0, 2.0]])
    out = tp.func.functional_call(model, {"0.weight": tp.eye(2) * 2}, x)
    assert out.tolist() == [[4, 8]]
    loose = tp.func.functional_call(model, {"0.weight": tp.eye(2) * 2}, x, tie_weights=False)
    assert tp.allclose(loose, (x * 2) @ model[1].weight.T)


def test_names_lead_around_circles_of_modules():
    model = tp.nn.Sequential(tp.nn.Linear(2, 2, bias=False))
    model[0].add_module("above", model)
    before = model[0].weight
    state = {"0.above.0.weight": tp.eye(2) * 2}
    x = tp.tensor([[1.0, 2.0]])
    assert tp.func.functional_call(model, state, x, tie_weights=False).tolist() == [[2, 4]]
    assert model[0].weight is before


def test_new_parameters_are_among_the_parameters():
    class Model(tp.nn.Module):
        def forward(self):
            return dict(self.named_parameters()), self.plain

    model = Model()
    new, plain = tp.nn.Parameter(tp.ones(1)), tp.zeros(1)
    parameters, found = tp.func.functional_call(model, {"new": new, "plain": plain})
    assert parameters == {"new": new}
    assert found is plain
    assert not hasattr(model, "new")
    assert not hasattr(model, "plain")


def test_what_is_no_tensor_is_refused_before_anything_changes():
    model = tp.nn.Linear(2, 2)
    before = dict(model.named_parameters())
    with pytest.raises(TypeError, match="3 is not an instance of torch"):
        tp.func.functional_call(model, {"weight": tp.ones(2, 2), "bias": 3}, tp.ones(1, 2))
    assert dict(model.named_parameters()) == before
    none = {"weight": tp.ones(1, 2), "bias": None}
    assert tp.func.functional_call(model, none, tp.ones(1, 2)).tolist() == [[2]]


def test_ensembles():
    models = [tp.nn.Linear(3, 2) for _ in range(4)]
    parameters, buffers = tp.func.stack_module_state(models)
    assert parameters["weight"].requires_grad
    assert parameters["weight"].is_leaf
    x = tp.randn(5, 3)

    def call(parameters, buffers, x):
        return tp.func.functional_call(models[0], (parameters, buffers), (x,))

    found = tp.vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
    assert tp.allclose(found, tp.stack([model(x) for model in models]), atol=1e-6)
    for given, match in (
        ([], "Expected at least one model"),
        ([tp.nn.ReLU(), tp.nn.Linear(2, 2)], "same class"),
        ([tp.nn.ReLU(), tp.nn.ReLU().eval()], "training/eval"),
    ):
        with pytest.raises(RuntimeError, match=match):
            tp.func.stack_module_state(given)


@pytest.mark.parametrize("transform", ["grad", "jacrev", "jacfwd"])
def test_what_comes_beside_the_value_need_not_be_a_tensor(transform):
    def func(x):
        return (x * x).sum(), {"twice": x * 2, "shape": [x.shape, "text", None]}

    x = tp.tensor([1.0, 2.0])
    found, aux = getattr(tp.func, transform)(func, has_aux=True)(x)
    assert found.tolist() == [2.0, 4.0]
    assert aux["twice"].tolist() == [2.0, 4.0]
    assert aux["shape"] == [(2,), "text", None]


def test_rows_of_a_jacobian_one_at_a_time_are_in_no_batch():
    class Root(tp.autograd.Function):
        @staticmethod
        def forward(x):
            return x.sqrt()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, gradient):
            (output,) = ctx.saved_tensors
            if not gradient.any():  # no batch can be asked
                return gradient
            return gradient / (2 * output)

    def func(points):
        return Root.apply(points["x"]) * points["y"]

    points = {"x": tp.tensor([1.0, 4.0]), "y": tp.tensor([2.0, 3.0])}
    found = tp.func.jacrev(func, chunk_size=1)(points)
    assert found["x"].tolist() == [[1.0, 0.0], [0.0, 0.75]]
    assert found["y"].tolist() == [[1.0, 0.0], [0.0, 2.0]]
    with pytest.raises(RuntimeError, match="vmap"):
        tp.func.jacrev(func, chunk_size=2)(points)


@pytest.mark.parametrize("lib", ["tensorplug", "torch"])
def test_transforms_of_nothing(lib):
    lib = pytest.importorskip(lib)
    x = lib.ones(2)
    calls = [
        lambda: lib.func.vjp(lambda x: (), x),
        lambda: lib.func.jvp(lambda x: [], (x,), (x,)),
        lambda: lib.func.jacrev(lambda x: ())(x),
        lambda: lib.func.jacfwd(lambda x: {})(x),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="non-empty output"):
            call()
    with pytest.raises(RuntimeError, match="primals to contain at least one Tensor"):
        lib.func.jvp(lambda: x, (), ())
    assert lib.func.linearize(lambda x: (), x)[0] == ()
