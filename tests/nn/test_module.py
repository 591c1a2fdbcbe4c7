"""Module: registration, attributes, traversal, modes, conversion, text, copies."""

import copy
import pickle

import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.core.tensor import device_members


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.second = nn.Sequential(nn.Linear(3, 3), nn.Identity())
        self.scale = nn.Parameter(tp.ones(1))
        self.register_buffer("mean", tp.zeros(3))
        self.register_buffer("scratch", tp.zeros(1), persistent=False)
        self.register_buffer("counter", tp.tensor(0))

    def forward(self, input):
        return self.second(self.first(input)) * self.scale


PARAMETERS = [
    "scale", "first.weight", "first.bias", "second.0.weight", "second.0.bias",
]  # fmt: skip
BUFFERS = ["mean", "scratch", "counter"]


# --- registration ---


def test_members_by_name():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == PARAMETERS
    assert [name for name, _ in net.named_buffers()] == BUFFERS
    assert [name for name, _ in net.named_modules()] == [
        "", "first", "second", "second.0", "second.1",
    ]  # fmt: skip
    assert [name for name, _ in net.named_children()] == ["first", "second"]
    assert [name for name, _ in net.named_parameters("net", recurse=False)] == ["net.scale"]
    assert list(net.parameters(recurse=False)) == [net.scale]
    assert len(list(net.buffers())) == 3
    assert next(iter(net.modules())) is net
    assert list(net.children()) == [net.first, net.second]


def test_shared_members_come_once():
    net = nn.Module()
    net.a = nn.Linear(1, 1, bias=False)
    net.b = net.a
    net.c = nn.Linear(1, 1, bias=False)
    net.c.weight = net.a.weight
    assert [name for name, _ in net.named_parameters()] == ["a.weight"]
    assert [name for name, _ in net.named_parameters(remove_duplicate=False)] == [
        "a.weight", "b.weight", "c.weight",
    ]  # fmt: skip
    assert [name for name, _ in net.named_modules()] == ["", "a", "c"]
    assert [name for name, _ in net.named_modules(remove_duplicate=False)] == ["", "a", "b", "c"]
    assert len(list(net.modules(remove_duplicate=False))) == 4
    assert [name for name, _ in net.named_children()] == ["a", "c"]


def test_none_holds_a_place():
    net = nn.Module()
    net.register_parameter("weight", None)
    net.register_buffer("mean", None)
    net.add_module("child", None)
    assert (net.weight, net.mean, net.child) == (None, None, None)
    assert list(net.parameters()) == list(net.buffers()) == list(net.children()) == []
    assert list(net.state_dict()) == []
    net.weight = nn.Parameter(tp.ones(1))
    net.mean = tp.zeros(2)
    net.child = nn.Identity()
    assert list(net.state_dict()) == ["weight", "mean"]
    assert net.child is net._modules["child"]


def test_assigning_moves_a_name_from_one_table_to_another():
    net = nn.Module()
    net.x = 3
    net.x = nn.Parameter(tp.ones(1))
    assert "x" not in vars(net)
    net.x = nn.Identity()
    assert list(net.parameters()) == []
    net.x = None
    assert net._modules == {"x": None}
    del net.x
    with pytest.raises(AttributeError):
        _ = net.x
    net.x = tp.ones(1)
    assert list(net.buffers()) == []  # a plain tensor is a plain attribute


def test_deleting():
    net = Net()
    del net.scale, net.mean, net.first, net.scratch
    assert [name for name, _ in net.named_parameters()] == PARAMETERS[3:]
    assert list(net._buffers) == ["counter"]
    assert net._non_persistent_buffers_set == set()
    with pytest.raises(AttributeError):
        del net.scale


def test_buffers_by_class():
    net = nn.Module()
    net.kept = nn.Buffer(tp.ones(1))
    net.scratch = nn.Buffer(tp.ones(1), persistent=False)
    assert list(net.state_dict()) == ["kept"]
    net.scratch = tp.zeros(2)
    assert net.get_buffer("scratch").tolist() == [0.0, 0.0]
    assert list(net.state_dict()) == ["kept"]
    assert not net.kept.requires_grad


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda m: m.register_buffer("a.b", None), KeyError, "buffer name can.*t contain"),
        (lambda m: m.register_buffer("", None), KeyError, "buffer name can.*t be empty"),
        (lambda m: m.register_buffer("weight", None), KeyError, "'weight' already exists"),
        (lambda m: m.register_buffer("forward", None), KeyError, "'forward' already exists"),
        (lambda m: m.register_buffer(3, None), TypeError, "should be a string. Got int"),
        (
            lambda m: m.register_buffer("b", 3),
            TypeError,
            "'int' object to buffer 'b'",
        ),
        (lambda m: m.register_parameter("b", 3), TypeError, "'int' object to parameter 'b'"),
        (lambda m: m.register_parameter("b", tp.ones(1)), TypeError, "object to parameter 'b'"),
        (lambda m: m.register_parameter("a.b", None), KeyError, "parameter name can.*t contain"),
        (lambda m: m.register_parameter("", None), KeyError, "parameter name can.*t be empty"),
        (lambda m: m.register_parameter(3, None), TypeError, "parameter name should be a string"),
        (lambda m: m.register_parameter("train", None), KeyError, "'train' already exists"),
        (lambda m: m.add_module("x", 3), TypeError, "int is not a Module subclass"),
        (lambda m: m.add_module("", None), KeyError, "module name can.*t be empty"),
        (lambda m: m.add_module("a.b", None), KeyError, "got: a.b"),
        (lambda m: m.add_module(3, None), TypeError, "module name should be a string"),
        (lambda m: m.register_module("weight", None), KeyError, "'weight' already exists"),
        (lambda m: setattr(m, "weight", tp.ones(1)), TypeError, "as parameter 'weight'"),
        (lambda m: setattr(m, "weight", 3), TypeError, "cannot assign 'int' as parameter"),
        (lambda m: setattr(m, "mean", 3), TypeError, "cannot assign 'int' as buffer 'mean'"),
        (lambda m: setattr(m, "child", 3), TypeError, "cannot assign 'int' as child module"),
        (lambda m: m.missing, AttributeError, "'Module' object has no attribute 'missing'"),
        (lambda m: m.get_submodule("a.b"), AttributeError, "Module has no attribute `a`"),
        (lambda m: m.get_submodule("weight"), AttributeError, "`weight` is not an nn.Module"),
        (lambda m: m.get_parameter("a"), AttributeError, "Module has no attribute `a`"),
        (lambda m: m.get_parameter("mean"), AttributeError, "`mean` is not an nn.Parameter"),
        (lambda m: m.get_buffer("weight"), AttributeError, "`weight` is not a buffer"),
        (lambda m: m.set_submodule("", nn.Identity()), ValueError, "without a target name"),
        (lambda m: m.set_submodule("a", 3), ValueError, "not an nn.Module"),
        (lambda m: m.set_submodule("a", nn.Identity(), True), AttributeError, "no attribute `a`"),
        (lambda m: m.set_submodule("weight", nn.Identity()), AttributeError, "not an nn.Module"),
        (lambda m: m.train(3), ValueError, "training mode is expected to be boolean"),
        (lambda m: m.to(tp.int64), TypeError, "only accepts floating point or complex dtypes"),
        (lambda m: m.to(3.5), TypeError, "invalid combination of arguments"),
        (lambda m: m.to(size=3), TypeError, "unexpected keyword argument 'size'"),
        (lambda m: m(1), NotImplementedError, r"Module \[Module\] is missing the required"),
        (lambda m: m.get_extra_state(), RuntimeError, "get_extra_state"),
        (lambda m: m.set_extra_state(1), RuntimeError, "set_extra_state"),
        (lambda m: nn.Module(3), TypeError, "takes no argument, got 3"),
        (lambda m: nn.Module(a=3), TypeError, "got keyword argument 'a'"),
        (lambda m: nn.Parameter([1.0]), TypeError, "argument 'data' must be Tensor, not list"),
        (lambda m: nn.Buffer(3), TypeError, "argument 'data' must be Tensor, not int"),
        (lambda m: m.register_forward_hook(3), TypeError, "a hook must be callable, got int"),
    ],
)
def test_bad_input(act, error, text):
    module = nn.Module()
    module.weight = nn.Parameter(tp.ones(1))
    module.register_buffer("mean", tp.ones(1))
    module.child = nn.Identity()
    before = str(module), list(module.state_dict())
    with pytest.raises(error, match=text):
        act(module)
    assert (str(module), list(module.state_dict())) == before


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (lambda: nn.Parameter(tp.ones(1)), "cannot assign parameters before Module.__init__"),
        (lambda: nn.Identity(), "cannot assign module before Module.__init__"),
        (lambda: nn.Buffer(tp.ones(1)), "cannot assign buffer before Module.__init__"),
    ],
)
def test_assignment_before_init(value, text):
    class Early(nn.Module):
        def __init__(self):
            self.x = value()

    with pytest.raises(AttributeError, match=text):
        Early()


def test_further_bases_get_their_arguments():
    class Mixin:
        def __init__(self, size):
            self.size = size

    class Both(nn.Module, Mixin):
        call_super_init = True

    assert Both(3).size == 3


# --- look-up ---


def test_paths():
    net = Net()
    assert net.get_submodule("") is net
    assert net.get_submodule("second.0") is net.second[0]
    assert net.get_parameter("second.0.bias") is net.second[0].bias
    assert net.get_buffer("mean") is net.mean
    net.set_submodule("second.0", nn.Identity())
    assert isinstance(net.second[0], nn.Identity)
    net.set_submodule("third", nn.Identity())
    assert isinstance(net.third, nn.Identity)


def test_dir_lists_members():
    names = dir(Net())
    assert {"first", "scale", "mean", "forward", "training"} <= set(names)
    assert "0" not in dir(nn.Sequential(nn.Identity()))


# --- modes ---


def test_train_and_eval():
    net = Net()
    assert net.training
    assert net.eval() is net
    assert [module.training for module in net.modules()] == [False] * 5
    net.second.train()
    assert [module.training for module in net.modules()] == [False, False, True, True, True]


def test_requires_grad_and_zero_grad():
    net = Net()
    net(tp.ones(2)).sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())
    net.zero_grad(set_to_none=False)
    assert all(parameter.grad.abs().sum().item() == 0 for parameter in net.parameters())
    net.zero_grad()
    assert all(parameter.grad is None for parameter in net.parameters())
    assert net.requires_grad_(False) is net
    assert not any(parameter.requires_grad for parameter in net.parameters())


def test_apply_visits_children_first():
    seen = []
    net = Net()
    assert net.apply(lambda module: seen.append(type(module).__name__)) is net
    assert seen == ["Linear", "Linear", "Identity", "Sequential", "Net"]


# --- conversion ---


def test_dtypes():
    net = Net()
    weight = net.first.weight
    assert net.double() is net
    assert net.first.weight is weight
    assert isinstance(weight, nn.Parameter)
    assert weight.is_leaf
    assert weight.requires_grad
    dtypes = {tensor.dtype for tensor in net.parameters()}
    assert dtypes == {tp.float64}
    assert (net.mean.dtype, net.counter.dtype) == (tp.float64, tp.int64)
    assert net.half().mean.dtype is tp.float16
    assert net.bfloat16().mean.dtype is tp.bfloat16
    assert net.float().mean.dtype is tp.float32
    assert net.to(tp.float64).scale.dtype is tp.float64
    assert net.to(dtype=tp.float32).scale.dtype is tp.float32
    assert net.to(tp.zeros(1, dtype=tp.float64)).scale.dtype is tp.float64
    assert net.type(tp.float32).counter.dtype is tp.float32


def test_gradients_are_converted_too():
    net = nn.Linear(2, 1)
    net(tp.ones(2)).sum().backward()
    net.double()
    assert net.weight.grad.dtype is tp.float64
    net(tp.ones(2, dtype=tp.float64)).sum().backward()
    assert net.weight.grad.tolist() == [[2.0, 2.0]]


def test_devices():
    net = Net()
    weight = net.first.weight
    assert net.cpu() is net
    assert net.to("cpu").first.weight is weight
    net.to("meta")
    assert net.first.weight is weight
    assert {tensor.device.type for tensor in (*net.parameters(), *net.buffers())} == {"meta"}
    net.to_empty(device="cpu")
    assert net.first.weight.device.type == "cpu"
    assert net.first.weight.shape == (3, 2)
    assert weight.requires_grad


class LedThroughItsMovers(Net):
    """One whose `to` calls the methods that move to a type of device."""

    def to(self, where):
        return getattr(self, where)()


@pytest.mark.parametrize("device_type", device_members.types)
def test_movers_do_not_call_to(device_type):
    if device_type != "cpu" and not getattr(tp, device_type).is_available():
        pytest.skip("there is no such device")
    net = LedThroughItsMovers()
    assert net.to(device_type) is net
    assert {tensor.device.type for tensor in (*net.parameters(), *net.buffers())} == {device_type}


def test_every_device_type_of_tensors_is_a_method_of_modules(monkeypatch):
    net = nn.Linear(1, 1, bias=False)
    assert not hasattr(net, "elsewhere")
    device_members.add("elsewhere")
    try:
        moved = []
        monkeypatch.setattr(tp.Tensor, "to", lambda self, device: moved.append(str(device)) or self)
        assert net.elsewhere() is net
        net.elsewhere(1)
        net.elsewhere("elsewhere:2")
        assert moved == ["elsewhere", "elsewhere:1", "elsewhere:2"]
    finally:
        del tp.Tensor.elsewhere, tp.Tensor.is_elsewhere


def test_complex_modules_warn():
    with pytest.warns(UserWarning, match="Complex modules"):
        net = nn.Linear(1, 1).to(tp.complex64)
    assert net.weight.dtype is tp.complex64


def test_the_optimizer_follows_a_conversion():
    net = nn.Linear(1, 1, bias=False)
    optimizer = tp.optim.SGD(net.parameters(), lr=1.0)
    net.double()
    net(tp.ones(1, dtype=tp.float64)).sum().backward()
    before = net.weight.item()
    optimizer.step()
    assert net.weight.item() == pytest.approx(before - 1)


# --- text ---


def test_repr():
    assert repr(Net()) == (
        "Net(\n"
        "  (first): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (second): Sequential(\n"
        "    (0): Linear(in_features=3, out_features=3, bias=True)\n"
        "    (1): Identity()\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Module()) == "Module()"


def test_repr_with_lines_of_its_own():
    class Described(nn.Module):
        def extra_repr(self):
            return "size=3"

    module = Described()
    assert repr(module) == "Described(size=3)"
    module.child = nn.Identity()
    assert repr(module) == "Described(\n  size=3\n  (child): Identity()\n)"


# --- copies ---


def test_deepcopy():
    net = Net()
    net(tp.ones(2)).sum().backward()
    clone = copy.deepcopy(net)
    assert [name for name, _ in clone.named_parameters()] == PARAMETERS
    assert isinstance(clone.first.weight, nn.Parameter)
    assert clone.first.weight.requires_grad
    assert clone.first.weight.grad is None
    assert net.first.weight.grad is not None
    with tp.no_grad():
        clone.first.weight.fill_(7)
    assert net.first.weight.tolist() != clone.first.weight.tolist()
    assert list(clone.state_dict()) == list(net.state_dict())


def test_deepcopy_keeps_sharing():
    net = nn.Module()
    net.a = nn.Linear(1, 1)
    net.b = nn.Linear(1, 1)
    net.b.weight = net.a.weight
    clone = copy.deepcopy(net)
    assert clone.b.weight is clone.a.weight
    assert clone.b.weight is not net.a.weight


def test_copy_shares_the_tensors():
    net = nn.Linear(1, 1)
    assert copy.copy(net).weight is net.weight


def test_pickle():
    net = pickle.loads(pickle.dumps(nn.Sequential(nn.Linear(2, 2)).eval()))
    assert not net.training
    assert isinstance(net[0].weight, nn.Parameter)
    assert net[0].weight.requires_grad


# --- parameters ---


def test_parameter():
    data = tp.zeros(2)
    parameter = nn.Parameter(data)
    assert isinstance(parameter, tp.Tensor)
    assert parameter.is_leaf
    assert parameter.requires_grad
    with tp.no_grad():
        parameter.fill_(3.0)
    assert data.tolist() == [3.0, 3.0]  # memory is shared
    assert type(parameter * 2) is tp.Tensor
    assert repr(parameter) == "Parameter containing:\ntensor([3., 3.], requires_grad=True)"
    assert not nn.Parameter(tp.tensor([1]), requires_grad=False).requires_grad
    assert nn.Parameter().shape == (0,)


def test_a_parameter_is_cut_off_from_the_graph_of_its_data():
    x = tp.ones(1, requires_grad=True)
    parameter = nn.Parameter(x * 2)
    (parameter * 3).sum().backward()
    assert x.grad is None
    assert parameter.grad.tolist() == [3.0]


def test_integers_need_no_gradient():
    with pytest.raises(RuntimeError, match="loating point"):
        nn.Parameter(tp.tensor([1]))


def test_copies_of_parameters():
    parameter = nn.Parameter(tp.ones(2), requires_grad=False)
    for clone in (copy.deepcopy(parameter), pickle.loads(pickle.dumps(parameter))):
        assert type(clone) is nn.Parameter
        assert clone.tolist() == [1.0, 1.0]
        assert not clone.requires_grad
    parameter.note = "kept"
    assert pickle.loads(pickle.dumps(parameter)).note == "kept"
    buffer = nn.Buffer(tp.ones(1), persistent=False)
    for clone in (copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))):
        assert type(clone) is nn.Buffer
        assert clone.persistent is False


CONVERSIONS = {
    "dtype": lambda tensor: tensor.double(),
    "sparse": lambda tensor: tensor.to_sparse() if tensor.dim() == 2 else tensor,
    "csr": lambda tensor: tensor.to_sparse_csr() if tensor.dim() == 2 else tensor,
    "itself": lambda tensor: tensor,
    "in place": lambda tensor: tensor.mul_(2),
    "format": lambda tensor: tensor.t().contiguous().t() if tensor.dim() == 2 else tensor,
    "copy": lambda tensor: tensor.clone(),
}


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("name", CONVERSIONS)
@pytest.mark.parametrize("graph", [False, True], ids=["", "create_graph"])
def test_what_becomes_of_parameters_and_gradients_that_are_converted(name, graph):
    torch = pytest.importorskip("torch", reason="identities are compared with torch's")
    convert = CONVERSIONS[name]
    if graph and name in ("sparse", "csr"):
        pytest.skip("torch takes leaves for that")

    def facts(lib):
        module = lib.nn.Linear(3, 2)
        module.register_buffer("buffer", lib.eye(2))
        before = dict(module.named_parameters())
        loss = (module(lib.ones(1, 3)) ** 2).sum()
        gradients = lib.autograd.grad(loss, list(before.values()), create_graph=graph)
        for parameter, gradient in zip(before.values(), gradients, strict=True):
            parameter.grad = gradient
        module._apply(convert)
        return [
            (
                name,
                isinstance(now, lib.nn.Parameter),
                now is before[name],
                now.requires_grad and now.is_leaf,
                str(now.dtype).partition(".")[2],
                str(now.layout).partition(".")[2],
                now.grad is gradient,
                str(now.grad.layout).partition(".")[2],
                str(now.grad.dtype).partition(".")[2],
                now.grad.requires_grad,
            )
            for (name, now), gradient in zip(module.named_parameters(), gradients, strict=True)
        ]

    assert facts(tp) == facts(torch)
