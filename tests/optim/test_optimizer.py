"""The base class: groups, hooks, checkpoints, and what it refuses."""

import copy
import pickle

import pytest

import tensorplug as tp
from tensorplug.optim import SGD, Adam, AdamW, Optimizer

ALL = [
    "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop",
    "ASGD",
]  # fmt: skip


def leaf(*values):
    return tp.tensor(list(values), requires_grad=True)


def with_grad(*values):
    tensor = leaf(*values)
    tensor.grad = tp.ones_like(tensor.detach())
    return tensor


def test_what_remembers_nothing_has_no_state():
    optimizer = SGD([with_grad(1.0)], lr=0.1)
    optimizer.step()
    assert optimizer.state_dict()["state"] == {}


# --- groups ---


def test_groups_have_their_own_options():
    a, b = with_grad(1.0), with_grad(1.0)
    optimizer = SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
    optimizer.step()
    assert a.item() == pytest.approx(0.9)
    assert b.item() == pytest.approx(0.5)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.5]


def test_group_added_later_is_updated():
    a, b = with_grad(1.0), with_grad(1.0)
    optimizer = SGD([a], lr=0.1)
    optimizer.add_param_group({"params": [b], "lr": 1.0})
    optimizer.step()
    assert (a.item(), b.item()) == (pytest.approx(0.9), pytest.approx(0.0))


def test_the_users_group_is_not_changed():
    group = {"params": [leaf(1.0)]}
    SGD([group], lr=0.1)
    assert list(group) == ["params"]


def test_generators_and_named_parameters():
    layer = tp.nn.Linear(2, 1)
    assert len(SGD(layer.parameters(), lr=0.1).param_groups[0]["params"]) == 2
    optimizer = SGD(layer.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


def test_parameters_without_gradient_are_left_alone():
    a, b = with_grad(1.0), leaf(1.0)
    optimizer = Adam([a, b])
    optimizer.step()
    assert b.item() == 1.0
    assert list(optimizer.state) == [a]


@pytest.mark.parametrize(
    ("params", "error", "text"),
    [
        (lambda: leaf(1.0), TypeError, "should be an iterable of Tensors or dicts"),
        (list, ValueError, "empty parameter list"),
        (lambda: [1.0], TypeError, "can only optimize Tensors, but one of the params is float"),
        (lambda: [leaf(1.0) * 2], ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: {"params": [1]}, TypeError, "can only optimize Tensors"),
        (lambda: [{"params": {leaf(1.0)}}], TypeError, "ordered collections"),
        (lambda: [("a", leaf(1.0)), leaf(2.0)], ValueError, "names are missing"),
        (lambda: [(1, leaf(1.0))], TypeError, "a named parameter is a pair"),
        (lambda: [{"lr": 1.0}], KeyError, "params"),
    ],
)
def test_refused_parameters(params, error, text):
    with pytest.raises(error, match=text):
        SGD(params(), lr=0.1)


def test_a_parameter_belongs_to_one_group():
    a = leaf(1.0)
    with pytest.raises(ValueError, match="more than one parameter group"):
        SGD([{"params": [a]}, {"params": [a]}], lr=0.1)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        SGD([a, a], lr=0.1)


def test_refused_groups():
    optimizer = SGD([leaf(1.0)], lr=0.1)
    with pytest.raises(TypeError, match="param_group must be a dict"):
        optimizer.add_param_group([leaf(1.0)])
    with pytest.raises(ValueError, match="with/without names"):
        optimizer.add_param_group({"params": [("b", leaf(1.0))]})
    assert len(optimizer.param_groups) == 1


def test_required_options():
    from tensorplug.optim.groups import required

    with pytest.raises(ValueError, match="required optimization parameter lr"):
        Optimizer([leaf(1.0)], {"lr": required})
    assert Optimizer([{"params": leaf(1.0), "lr": 1}], {"lr": required}).param_groups[0]["lr"] == 1


BAD_OPTIONS = [
    ("SGD", {"lr": -1.0}, "Invalid learning rate: -1.0"),
    ("SGD", {"momentum": -1.0}, "Invalid momentum value: -1.0"),
    ("SGD", {"weight_decay": -1.0}, "Invalid weight_decay value"),
    ("SGD", {"nesterov": True}, "Nesterov momentum requires a momentum and zero dampening"),
    ("SGD", {"nesterov": True, "momentum": 0.9, "dampening": 0.1}, "Nesterov momentum"),
    ("Adam", {"lr": -1.0}, "Invalid learning rate"),
    ("Adam", {"eps": -1.0}, "Invalid epsilon value: -1.0"),
    ("Adam", {"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0: 1.0"),
    ("AdamW", {"betas": (0.9, -0.1)}, "Invalid beta parameter at index 1: -0.1"),
    ("AdamW", {"weight_decay": -1.0}, "Invalid weight_decay value"),
    ("RMSprop", {"alpha": -1.0}, "Invalid alpha value"),
    ("RMSprop", {"momentum": -1.0}, "Invalid momentum value"),
    ("Adagrad", {"lr_decay": -1.0}, "Invalid lr_decay value"),
    ("Adagrad", {"initial_accumulator_value": -1.0}, "Invalid initial_accumulator_value"),
    ("Adadelta", {"rho": 1.5}, "Invalid rho value: 1.5"),
    ("Adamax", {"betas": (2.0, 0.9)}, "Invalid beta parameter at index 0"),
    ("NAdam", {"momentum_decay": -1.0}, "Invalid momentum_decay value"),
    ("RAdam", {"eps": -1.0}, "Invalid epsilon value"),
    ("Rprop", {"etas": (1.5, 0.5)}, "Invalid eta values: 1.5, 0.5"),
    ("ASGD", {"weight_decay": -1.0}, "Invalid weight_decay value"),
]


@pytest.mark.parametrize(("name", "options", "text"), BAD_OPTIONS)
def test_refused_options(name, options, text):
    with pytest.raises(ValueError, match=text):
        getattr(tp.optim, name)([leaf(1.0)], **options)


@pytest.mark.parametrize("name", ALL)
def test_every_optimizer_checks_its_learning_rate(name):
    with pytest.raises(ValueError, match="Invalid learning rate"):
        getattr(tp.optim, name)([leaf(1.0)], lr=-0.1)
    with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
        getattr(tp.optim, name)([leaf(1.0)], lr=tp.tensor([0.1, 0.2]))


def test_implementations_that_exclude_each_other():
    with pytest.raises(RuntimeError, match="cannot be `True` together"):
        SGD([leaf(1.0)], foreach=True, fused=True)
    with pytest.raises(RuntimeError, match="does not support `differentiable`"):
        Adam([leaf(1.0)], differentiable=True, fused=True)
    SGD([leaf(1.0)], foreach=True)
    AdamW([leaf(1.0)], fused=True, capturable=True)


# --- zero_grad and step ---


def test_zero_grad():
    a = with_grad(1.0)
    optimizer = SGD([a], lr=0.1)
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert a.grad is None


def test_closure_is_recorded_and_its_loss_returned():
    a = leaf(3.0)
    optimizer = SGD([a], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (a * a).sum()
        loss.backward()
        return loss

    with tp.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 9.0
    assert a.item() == pytest.approx(2.4)
    assert SGD([a], lr=0.1).step() is None


def test_parameters_stay_leaves():
    a = with_grad(1.0)
    SGD([a], lr=0.1, momentum=0.9).step()
    assert a.is_leaf
    assert a.requires_grad


def test_step_of_the_base_says_what_is_missing():
    with pytest.raises(NotImplementedError, match="defines neither update nor step"):
        Optimizer([with_grad(1.0)], {}).step()


# --- hooks ---


def test_step_hooks():
    calls = []
    a = with_grad(1.0)
    optimizer = SGD([a], lr=0.1)
    before = optimizer.register_step_pre_hook(
        lambda optimizer, args, kwargs: calls.append(("before", a.item()))
    )
    optimizer.register_step_post_hook(
        lambda optimizer, args, kwargs: calls.append(("after", round(a.item(), 3)))
    )
    optimizer.step()
    before.remove()
    optimizer.step()
    assert calls == [("before", 1.0), ("after", 0.9), ("after", 0.8)]


def test_pre_hook_may_replace_the_arguments():
    optimizer = SGD([with_grad(1.0)], lr=0.1)
    handle = optimizer.register_step_pre_hook(
        lambda optimizer, args, kwargs: ((lambda: "replaced",), kwargs)
    )
    assert optimizer.step() == "replaced"
    handle.remove()
    optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="tuple of"):
        optimizer.step()


def test_hooks_run_once_around_a_subclass_that_calls_its_base():
    class Noisy(SGD):
        def step(self, closure=None):
            return super().step(closure)

    calls = []
    optimizer = Noisy([with_grad(1.0)], lr=0.1)
    optimizer.register_step_post_hook(lambda *args: calls.append(1))
    optimizer.step()
    assert calls == [1]


def test_state_dict_hooks():
    a = with_grad(1.0)
    optimizer = SGD([a], lr=0.1)
    order = []
    optimizer.register_state_dict_pre_hook(lambda optimizer: order.append("pre"))
    optimizer.register_state_dict_post_hook(lambda optimizer, state: {**state, "note": 1})
    optimizer.register_state_dict_pre_hook(lambda optimizer: order.append("first"), prepend=True)
    state = optimizer.state_dict()
    assert order == ["first", "pre"]
    assert state["note"] == 1

    def set_rate(optimizer, state):
        groups = [{**group, "lr": 0.7} for group in state["param_groups"]]
        return {**state, "param_groups": groups}

    optimizer.register_load_state_dict_pre_hook(set_rate)
    optimizer.register_load_state_dict_post_hook(lambda optimizer: order.append("loaded"))
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.7
    assert order[-1] == "loaded"


# --- checkpoints ---


def test_loading_converts_to_the_parameters_dtype_but_not_the_step():
    a = with_grad(1.0, 2.0)
    optimizer = Adam([a])
    optimizer.step()
    b = tp.tensor([1.0, 2.0], dtype=tp.float64, requires_grad=True)
    other = Adam([b])
    other.load_state_dict(optimizer.state_dict())
    state = other.state[b]
    assert state["exp_avg"].dtype is tp.float64
    assert state["step"].dtype is tp.float32
    state["exp_avg"].zero_()
    assert optimizer.state[a]["exp_avg"].sum().item() != 0  # nothing is shared


def test_loading_refuses_what_does_not_fit():
    one = SGD([leaf(1.0)], lr=0.1)
    two = SGD([{"params": leaf(1.0)}, {"params": leaf(2.0)}], lr=0.2)
    with pytest.raises(ValueError, match="different number of parameter groups"):
        one.load_state_dict(two.state_dict())
    with pytest.raises(ValueError, match="doesn't match the size"):
        one.load_state_dict(SGD([leaf(1.0), leaf(2.0)], lr=0.2).state_dict())
    assert one.param_groups[0]["lr"] == 0.1


def test_state_dict_holds_plain_data_and_shared_tensors():
    a = with_grad(1.0)
    optimizer = SGD([a], lr=0.1, momentum=0.9)
    optimizer.step()
    saved = optimizer.state_dict()
    assert saved["param_groups"][0]["params"] == [0]
    assert saved["state"][0]["momentum_buffer"] is optimizer.state[a]["momentum_buffer"]


def test_options_missing_in_an_old_checkpoint_get_their_defaults():
    optimizer = SGD([leaf(1.0)], lr=0.1)
    saved = optimizer.state_dict()
    del saved["param_groups"][0]["nesterov"]
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["nesterov"] is False


def test_deepcopy_and_pickle_keep_state():
    a = with_grad(1.0)
    optimizer = Adam([a])
    optimizer.step()
    for clone in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        parameter = clone.param_groups[0]["params"][0]
        assert parameter is not a
        assert clone.state[parameter]["step"].item() == 1
        parameter.grad = tp.ones(1)
        clone.step()
        assert clone.state[parameter]["step"].item() == 2
    assert optimizer.state[a]["step"].item() == 1


def test_repr_lists_the_options_of_each_group():
    assert repr(SGD([leaf(1.0)], lr=0.1)) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n"
        "    fused: None\n    lr: 0.1\n    maximize: False\n    momentum: 0\n    nesterov: False\n"
        "    weight_decay: 0\n)"
    )


def test_hooks_of_all_optimizers():
    from tensorplug.optim.optimizer import (
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    order = []
    handles = [
        register_optimizer_step_pre_hook(lambda *args: order.append("all before")),
        register_optimizer_step_post_hook(lambda *args: order.append("all after")),
    ]
    x = tp.ones(1, requires_grad=True)
    for optimizer in (tp.optim.SGD([x]), tp.optim.LBFGS([x])):
        optimizer.register_step_pre_hook(lambda *args: order.append("before"))
        optimizer.register_step_post_hook(lambda *args: order.append("after"))
        optimizer.step(lambda: order.append("step") or 0.0)
    for handle in handles:
        handle.remove()
    assert order == ["all before", "before", "step", "after", "all after"] * 2
    tp.optim.SGD([x]).step()
    assert len(order) == 10


def test_other_parameters_are_swapped_in_for_a_while():
    x = tp.zeros(1, requires_grad=True)
    optimizer = tp.optim.Adam([x], lr=1.0)
    x.grad = tp.ones(1)
    optimizer.step()
    saved, state = optimizer.param_groups[0], optimizer.state
    other = tp.full((1,), 5.0)
    other.grad = tp.ones(1)
    given = {
        "state": {0: {key: value.clone() for key, value in state[x].items()}},
        "param_groups": [{**optimizer.state_dict()["param_groups"][0], "lr": 0.5}],
    }
    with tp.optim.swap_in_optimizer_params_and_state(optimizer, {"x": other}, given):
        optimizer.step()
    assert other.item() == pytest.approx(4.5)
    assert given["state"][0]["step"].item() == 2.0
    assert x.item() == pytest.approx(-1.0)
    assert optimizer.state is state
    assert state[x]["step"].item() == 1.0
    assert optimizer.param_groups[0] is saved
    assert saved["lr"] == 1.0
    assert saved["params"][0] is x
    for parameters in ({}, {"x": other, "y": other}):
        swap = tp.optim.swap_in_optimizer_params_and_state(optimizer, parameters, given)
        with pytest.raises(ValueError, match="1 parameters in 1 groups"), swap:
            pass
