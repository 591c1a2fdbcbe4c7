"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from collections import OrderedDict

import pytest

import tensorplug as tp
from tensorplug import nn


def layers(count=3):
    return [nn.Linear(1, 1) for _ in range(count)]


class Double(nn.Module):
    def forward(self, input):
        return input * 2


# --- Sequential ---


def test_sequential_runs_in_order():
    net = nn.Sequential(Double(), nn.Flatten(0), Double())
    assert net(tp.ones(2, 1)).tolist() == [4.0, 4.0]
    assert nn.Sequential()(3) == 3


def test_sequential_by_name():
    net = nn.Sequential(OrderedDict(first=Double(), second=nn.Identity()))
    assert [name for name, _ in net.named_children()] == ["first", "second"]
    assert net.first is net[0]
    assert list(nn.Sequential({"a": Double()})._modules) == ["a"]
    assert list(net[1:]._modules) == ["second"]


def test_sequential_as_a_list():
    members = layers(4)
    net = nn.Sequential(*members)
    assert len(net) == 4
    assert list(net) == members
    assert net[-1] is members[3]
    assert list(net[1:3]) == members[1:3]
    assert isinstance(net[1:3], nn.Sequential)
    assert members[2] in net
    del net[0]
    assert list(net._modules) == ["0", "1", "2"]
    assert list(net) == members[1:]
    del net[1:]
    assert list(net) == [members[1]]
    net[0] = members[0]
    assert net[0] is members[0]
    assert net.append(members[1]) is net
    net.extend(members[2:])
    assert list(net) == members
    assert net.pop(0) is members[0]
    net.insert(0, members[0])
    net.insert(-4, members[3])
    assert list(net) == [members[3], *members]


@pytest.mark.parametrize("what", [0, -1, slice(1, 3), slice(0, None, 2), slice(3, 3)], ids=str)
@pytest.mark.parametrize(
    "names", [["0", "1", "2", "3"], ["a", "b", "c", "d"], ["0", "1", "x", "3"]]
)
def test_names_after_deletion_are_torchs(names, what):
    torch = pytest.importorskip("torch", reason="torch is the reference")
    found = []
    for library in (torch, tp):
        made = OrderedDict((name, library.nn.Linear(i + 1, 1)) for i, name in enumerate(names))
        net = library.nn.Sequential(made)
        del net[what]
        found.append([(name, tuple(value.shape)) for name, value in net.state_dict().items()])
    assert found[1] == found[0]


def test_sequential_arithmetic():
    a, b = layers(2)
    left, right = nn.Sequential(a), nn.Sequential(b)
    assert list(left + right) == [a, b]
    left += right
    assert list(left) == [a, b]
    assert list(nn.Sequential(a) * 3) == list(3 * nn.Sequential(a)) == [a, a, a]
    right *= 2
    assert list(right) == [b, b]


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda s: nn.Sequential(3), TypeError, "int is not a Module subclass"),
        (lambda s: s[3], IndexError, "index 3 is out of range"),
        (lambda s: s["a"], TypeError, "'str' object cannot be interpreted as an integer"),
        (lambda s: s.append(3), TypeError, "int is not a Module subclass"),
        (lambda s: s.insert(5, s), IndexError, "Index out of range: 5"),
        (lambda s: s.insert(0, 5), AssertionError, "module should be of type"),
        (lambda s: s * 0, ValueError, "Non-positive multiplication factor 0"),
        (lambda s: s * "a", TypeError, "unsupported operand type"),
        (lambda s: s + 3, ValueError, "supports only objects of Sequential class"),
        (lambda s: s.__iadd__(3), ValueError, "supports only objects of Sequential class"),
        (lambda s: s.extend(3), TypeError, "not iterable"),
        (lambda s: s.pop(4), IndexError, "index 4 is out of range"),
    ],
)
def test_sequential_refuses(act, error, text):
    net = nn.Sequential(Double())
    with pytest.raises(error, match=text):
        act(net)
    assert len(net) == 1


# --- ModuleList ---


def test_module_list():
    members = layers(4)
    modules = nn.ModuleList(members[:2])
    assert modules.append(members[2]) is modules
    modules.extend([members[3]])
    assert list(modules) == members
    assert len(modules) == 4
    assert modules[-1] is members[3]
    assert list(modules[::2]) == members[::2]
    assert isinstance(modules[:1], nn.ModuleList)
    assert members[1] in modules
    assert len(list(modules.parameters())) == 8
    modules.insert(0, members[3])
    assert list(modules) == [members[3], *members]
    assert modules.pop(0) is members[3]
    modules[0] = members[1]
    assert modules[0] is members[1]
    del modules[0]
    del modules[-1]
    assert list(modules) == members[1:3]
    assert list(modules._modules) == ["0", "1"]
    assert list(modules.__add__([members[0]])) == [*members[1:3], members[0]]
    modules += [members[0]]
    assert len(modules) == 3
    with pytest.raises(NotImplementedError):
        modules(tp.ones(1))


def test_module_list_repr():
    modules = nn.ModuleList([*layers(2), nn.Identity(), nn.Linear(1, 1)])
    assert repr(modules) == (
        "ModuleList(\n"
        "  (0-1): 2 x Linear(in_features=1, out_features=1, bias=True)\n"
        "  (2): Identity()\n"
        "  (3): Linear(in_features=1, out_features=1, bias=True)\n"
        ")"
    )
    assert repr(nn.ModuleList()) == "ModuleList()"


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda m: nn.ModuleList(3), TypeError, "should be called with an iterable, but got int"),
        (lambda m: m.extend(3), TypeError, "should be called with an iterable"),
        (lambda m: m[0], IndexError, "index 0 is out of range"),
        (lambda m: m[0.5], TypeError, "'float' object cannot be interpreted"),
        (lambda m: m.append(3), TypeError, "int is not a Module subclass"),
        (lambda m: m.insert(0, 3), TypeError, "int is not a Module subclass"),
    ],
)
def test_module_list_refuses(act, error, text):
    modules = nn.ModuleList()
    with pytest.raises(error, match=text):
        act(modules)
    assert len(modules) == 0


# --- ModuleDict ---


def test_module_dict():
    a, b, c = layers(3)
    modules = nn.ModuleDict({"a": a})
    modules["b"] = b
    modules.update([("c", c)])
    assert list(modules) == list(modules.keys()) == ["a", "b", "c"]
    assert list(modules.values()) == [a, b, c]
    assert dict(modules.items()) == {"a": a, "b": b, "c": c}
    assert "b" in modules
    assert "d" not in modules
    assert modules.b is modules["b"] is b
    assert len(list(modules.parameters())) == 6
    assert modules.pop("b") is b
    del modules["a"]
    assert len(modules) == 1
    modules.update(nn.ModuleDict({"c": a}))
    assert modules["c"] is a
    modules.clear()
    assert len(modules) == 0


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: nn.ModuleDict()["a"], KeyError, "a"),
        (lambda: nn.ModuleDict(3), TypeError, "iterable of key/value pairs, but got int"),
        (lambda: nn.ModuleDict([3]), TypeError, "element #0 should be Iterable"),
        (lambda: nn.ModuleDict([(3,)]), ValueError, "element #0 has length 1; 2 is required"),
        (lambda: nn.ModuleDict({"a": 3}), TypeError, "int is not a Module subclass"),
        (lambda: nn.ModuleDict({"keys": nn.Identity()}), KeyError, "'keys' already exists"),
    ],
)
def test_module_dict_refuses(act, error, text):
    with pytest.raises(error, match=text):
        act()


# --- ParameterList ---


def test_parameter_list():
    first = nn.Parameter(tp.ones(1))
    members = nn.ParameterList([first, tp.zeros(2)])
    members.append(tp.zeros(3)).extend([4])
    assert len(members) == 4
    assert members[0] is first
    assert isinstance(members[1], nn.Parameter)
    assert members[-1] == 4
    assert [name for name, _ in members.named_parameters()] == ["0", "1", "2"]
    assert [tuple(p.shape) for p in members[:3]] == [(1,), (2,), (3,)]
    assert isinstance(members[1:], nn.ParameterList)
    members[1] = tp.ones(5)
    assert members[1].shape == (5,)
    members += [tp.zeros(1)]
    assert len(list(members)) == 5
    assert repr(nn.ParameterList([tp.zeros(2, 3), "x"])) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [tensorplug.float32 of size 2x3]\n"
        "    (1): Object of type: str\n"
        ")"
    )


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: nn.ParameterList(3), TypeError, "with an iterable, but got int"),
        (lambda: nn.ParameterList(tp.ones(2)), TypeError, "with an iterable, but got Tensor"),
        (lambda: nn.ParameterList()[1], IndexError, "index 1 is out of range"),
        (lambda: nn.ParameterList()("a"), RuntimeError, "ParameterList should not be called"),
        (lambda: nn.ParameterDict(3), TypeError, "iterable of key/value pairs, but got int"),
        (lambda: nn.ParameterDict([3]), TypeError, "element #0 should be Iterable"),
        (lambda: nn.ParameterDict([("a",)]), ValueError, "has length 1; 2 is required"),
        (lambda: nn.ParameterDict([(1, 2)]), TypeError, "not a string"),
        (lambda: nn.ParameterDict()["a"], KeyError, "a"),
        (lambda: nn.ParameterDict().popitem(), KeyError, "empty"),
        (lambda: nn.ParameterDict()("a"), RuntimeError, "ParameterDict should not be called"),
    ],
)
def test_parameter_containers_refuse(act, error, text):
    with pytest.raises(error, match=text):
        act()


# --- ParameterDict ---


def test_parameter_dict():
    a = nn.Parameter(tp.ones(1))
    members = nn.ParameterDict({"a": a})
    members["b"] = tp.zeros(2)
    members.update([("keys", tp.zeros(3))])
    assert list(members) == ["a", "b", "keys"]
    assert list(members.keys()) == ["a", "b", "keys"]  # still the method
    assert members["a"] is a
    assert isinstance(members["keys"], nn.Parameter)
    assert "b" in members
    assert len(list(members.parameters())) == 3
    assert members.get("x", 5) == 5
    assert members.setdefault("c", tp.ones(1)) is members["c"]
    assert list(reversed(members)) == ["c", "keys", "b", "a"]
    assert members.pop("b").shape == (2,)
    assert members.popitem()[0] == "c"
    assert len(members) == 2
    assert dict(members.items())["a"] is a
    assert list(members.copy()) == ["a", "keys"]
    both = members | nn.ParameterDict({"z": tp.ones(1)})
    assert list(both) == ["a", "keys", "z"]
    members |= nn.ParameterDict({"y": tp.ones(1)})
    assert list(members) == ["a", "keys", "y"]
    assert list(members.fromkeys(["p", "q"], 1).values()) == [1, 1]
    members.clear()
    assert len(members) == 0
    assert repr(members) == "ParameterDict()"
