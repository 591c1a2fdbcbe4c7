"""Checkpoints of modules."""

import copy
import pickle

import pytest

import tensorplug as tp
from tensorplug import nn


class Counted(nn.Linear):
    """Keeps a count in its checkpoints."""

    _version = 3
    count = 0

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state):
        self.count = state["count"]


def pair():
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1, bias=False))
    net.register_buffer("mean", tp.zeros(3))
    net.register_buffer("scratch", tp.zeros(1), persistent=False)
    return net


def test_keys_and_sharing():
    net = pair()
    state = net.state_dict()
    assert list(state) == ["mean", "0.weight", "0.bias", "1.weight"]
    assert not state["0.weight"].requires_grad
    state["mean"].add_(1)
    assert net.mean.tolist() == [1.0, 1.0, 1.0]
    assert net.state_dict(keep_vars=True)["0.weight"] is net[0].weight
    assert list(net.state_dict(prefix="net."))[1] == "net.0.weight"
    destination = {"other": 1}
    assert net.state_dict(destination=destination) is destination
    assert "1.weight" in destination
    assert list(net.state_dict({}, "p.", False)) == [f"p.{key}" for key in state]


def test_round_trip():
    a, b = pair(), pair()
    keys = b.load_state_dict(a.state_dict())
    assert str(keys) == repr(keys) == "<All keys matched successfully>"
    for name, tensor in a.state_dict().items():
        assert b.state_dict()[name].tolist() == tensor.tolist()
    assert b[0].weight.requires_grad
    assert b[0].weight.is_leaf


def test_a_checkpoint_can_be_pickled():
    a = pair()
    state = pickle.loads(pickle.dumps(a.state_dict()))
    assert state._metadata["0"] == {"version": 1}
    b = pair()
    b.load_state_dict(state)
    assert b[0].bias.tolist() == a[0].bias.tolist()
    assert a.state_dict().copy()._metadata == state._metadata


def test_loading_does_not_change_the_given_dictionary():
    a = pair()
    state = dict(a.state_dict())
    keys = list(state)
    pair().load_state_dict(state)
    assert list(state) == keys


def test_everything_that_does_not_fit_is_listed():
    net = pair()
    before = net[0].weight.tolist()
    state = {
        "0.weight": tp.zeros(3, 3),
        "1.weight": 5,
        "0.extra": tp.zeros(1),
        "2.weight": tp.zeros(1),
    }
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    lines = str(caught.value).split("\n\t")
    assert lines[0] == "Error(s) in loading state_dict for Sequential:"
    assert lines[1] == 'Missing key(s) in state_dict: "mean", "0.bias". '
    assert lines[2] == 'Unexpected key(s) in state_dict: "2.weight", "0.extra". '
    assert lines[3].startswith("size mismatch for 0.weight: copying a param with shape ")
    assert "[3, 3]) from checkpoint, the shape in current model is " in lines[3]
    assert lines[4].startswith('While copying the parameter named "1.weight", expected')
    assert net[0].weight.tolist() == before


def test_torch_lists_the_same():
    torch = pytest.importorskip("torch", reason="messages are compared with torch's")
    state = {
        "0.weight": 0, "0.extra": 0, "2.weight": 0, "weight": 0, "0": 0,
        "0.weight.more": 0, "0.extra.more": 0, "0.weight.": 0, "1.more.and.more": 0,
    }  # fmt: skip
    messages = []
    for library in (tp, torch):
        net = library.nn.Sequential(library.nn.Linear(2, 3), library.nn.Identity())
        bad = {key: library.zeros(3, 3) for key in state}
        with pytest.raises(RuntimeError) as caught:
            net.load_state_dict(bad)
        messages.append(str(caught.value).replace("torch.Size", "Size"))
    assert messages[0] == messages[1]


def test_partial_loading():
    net = pair()
    keys = net.load_state_dict({"0.bias": tp.ones(3), "foo": tp.ones(1)}, strict=False)
    assert keys.missing_keys == ["mean", "0.weight", "1.weight"]
    assert keys.unexpected_keys == ["foo"]
    assert net[0].bias.tolist() == [1.0, 1.0, 1.0]
    assert "missing_keys=['mean'" in repr(keys)
    with pytest.raises(RuntimeError, match="size mismatch"):
        net.load_state_dict({"0.bias": tp.ones(4)}, strict=False)


def test_loading_converts_unless_it_assigns():
    state = {"weight": tp.ones(1, 2, dtype=tp.float64), "bias": tp.ones(1, dtype=tp.float64)}
    net = nn.Linear(2, 1)
    weight = net.weight
    net.load_state_dict(state)
    assert net.weight is weight
    assert weight.dtype is tp.float32
    weight.requires_grad_(False)
    net.load_state_dict(state, assign=True)
    assert net.weight.dtype is tp.float64
    assert isinstance(net.weight, nn.Parameter)
    assert not net.weight.requires_grad
    assert net.bias.requires_grad


def test_loading_into_a_model_without_data():
    state = nn.Linear(2, 1).state_dict()
    net = nn.Linear(2, 1, device="meta")
    with pytest.warns(UserWarning, match="a meta parameter in the current model, which is a no-op"):
        net.load_state_dict(state)
    assert net.weight.is_meta
    net.load_state_dict(state, assign=True)
    assert net.weight.tolist() == state["weight"].tolist()


def test_one_element_goes_into_a_scalar():
    net = nn.Module()
    net.register_buffer("count", tp.tensor(0.0))
    net.load_state_dict({"count": tp.tensor([3.0])})
    assert net.count.item() == 3.0


def test_not_a_dictionary():
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'int'>"):
        pair().load_state_dict(3)


def test_extra_state():
    a, b = nn.Sequential(Counted(1, 1)), nn.Sequential(Counted(1, 1))
    a[0].count = 5
    state = a.state_dict()
    assert state["0._extra_state"] == {"count": 5}
    assert state._metadata["0"] == {"version": 3}
    b.load_state_dict(state)
    assert b[0].count == 5
    del state["0._extra_state"]
    with pytest.raises(RuntimeError, match=r'Missing key.*"0._extra_state"'):
        b.load_state_dict(state)
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"0._extra_state"'):
        nn.Sequential(nn.Linear(1, 1)).load_state_dict(a.state_dict())


def test_versions_reach_the_modules():
    seen = []

    class Old(nn.Linear):
        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            seen.append((prefix, local_metadata.get("version")))
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    nn.Sequential(Old(1, 1)).load_state_dict(
        nn.Sequential(Counted(1, 1)).state_dict(), strict=False
    )
    assert seen == [("0.", 3)]


# --- hooks ---


def test_saving_hooks():
    calls = []
    net = pair()
    net.register_state_dict_pre_hook(lambda *args: calls.append(args))
    net.register_state_dict_post_hook(lambda module, state, prefix, _: state.pop("mean"))
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        net.state_dict()
    assert calls == [(net, "", False)]

    def rename(module, state, prefix, metadata):
        state[f"{prefix}average"] = state.pop(f"{prefix}mean")

    net = pair()
    handle = net.register_state_dict_post_hook(rename)
    assert list(net.state_dict(prefix="p."))[-1] == "p.average"
    handle.remove()
    net._register_state_dict_hook(lambda *args: {"all": 1})
    assert net.state_dict() == {"all": 1}


HEARD = []


def hook(*args):
    HEARD.append(args)


REGISTERED = {
    "register_state_dict_post_hook": lambda module: module.state_dict(),
    "register_state_dict_pre_hook": lambda module: module.state_dict(),
    "_register_state_dict_hook": lambda module: module.state_dict(),
    "register_load_state_dict_pre_hook": lambda module: module.load_state_dict(module.state_dict()),
    "_register_load_state_dict_pre_hook": lambda module: module.load_state_dict(module.state_dict()),
    "register_load_state_dict_post_hook": lambda module: module.load_state_dict(module.state_dict()),
    "register_forward_hook": lambda module: module(tp.ones(2)),
    "register_forward_pre_hook": lambda module: module(tp.ones(2)),
    "register_full_backward_hook": lambda module: (
        module(tp.ones(2, requires_grad=True)).sum().backward()
    ),
    "register_full_backward_pre_hook": lambda module: module(tp.ones(2)).sum().backward(),
}  # fmt: skip


@pytest.mark.parametrize("name", REGISTERED)
@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))]
)
def test_modules_with_hooks_are_pickled(name, again):
    module = tp.nn.Linear(2, 2)
    getattr(module, name)(hook)
    copied = again(module)
    HEARD.clear()
    REGISTERED[name](copied)
    assert len(HEARD) == 1


def test_loading_hooks():
    net = pair()
    state = net.state_dict()
    state["average"] = state.pop("mean") + 4

    def rename(module, values, prefix, metadata, strict, missing, unexpected, errors):
        assert module is net
        values[f"{prefix}mean"] = values.pop(f"{prefix}average")

    first = net.register_load_state_dict_pre_hook(rename)
    net.load_state_dict(state)
    assert net.mean.tolist() == [4.0, 4.0, 4.0]
    assert "average" in state
    first.remove()
    net._register_load_state_dict_pre_hook(lambda values, prefix, *rest: values.pop("average"))
    net.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    net.load_state_dict(state)


def test_a_post_hook_returns_nothing():
    net = pair()
    net.register_load_state_dict_post_hook(lambda module, keys: keys)
    with pytest.raises(AssertionError, match="not expected to return new values"):
        net.load_state_dict(net.state_dict())


def test_hooks_of_children_see_their_own_prefix():
    net = pair()
    seen = []
    net[0].register_load_state_dict_pre_hook(
        lambda module, values, prefix, *rest: seen.append((prefix, list(values)))
    )
    net.load_state_dict(net.state_dict())
    assert seen == [("0.", ["0.weight", "0.bias"])]
