"""Hooks of modules: around forward, around backward, for all modules."""

from collections import OrderedDict

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.nn.hooks import global_hooks
from tensorplug.nn.module_base import HOOK_TABLES


class Add(nn.Module):
    def forward(self, input, other=1.0):
        return input + other


class Fails(nn.Module):
    def forward(self, input):
        raise RuntimeError("failed")


# --- forward ---


def test_pre_hooks_see_and_replace_the_arguments():
    module = Add()
    seen = []
    handle = module.register_forward_pre_hook(lambda module, args: seen.append(args))
    x = tp.ones(1)
    module(x)
    assert seen == [(x,)]
    handle.remove()
    module.register_forward_pre_hook(lambda module, args: args[0] * 10)
    assert module(x).item() == 11
    module.register_forward_pre_hook(lambda module, args: (args[0], 5.0))
    assert module(x).item() == 15
    assert len(seen) == 1


def test_pre_hooks_with_keyword_arguments():
    module = Add()
    module.register_forward_pre_hook(
        lambda module, args, kwargs: (args, {"other": kwargs["other"] * 2}), with_kwargs=True
    )
    assert module(tp.ones(1), other=3.0).item() == 7
    module.register_forward_pre_hook(lambda module, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="tuple of"):
        module(tp.ones(1), other=3.0)


def test_forward_hooks_see_and_replace_the_output():
    module = Add()
    seen = []
    module.register_forward_hook(lambda module, args, output: seen.append((args, output.item())))
    module.register_forward_hook(
        lambda module, args, kwargs, output: output * kwargs["other"], with_kwargs=True
    )
    x = tp.ones(1)
    assert module(x, other=2.0).item() == 6
    assert seen == [((x,), 3.0)]


def test_order_and_prepend():
    module = Add()
    order = []
    module.register_forward_hook(lambda *args: order.append("second"))
    module.register_forward_hook(lambda *args: order.append("first"), prepend=True)
    module.register_forward_pre_hook(lambda *args: order.append("before"))
    module.register_forward_pre_hook(lambda *args: order.append("way before"), prepend=True)
    module(tp.ones(1))
    assert order == ["way before", "before", "first", "second"]


def test_handles_are_contexts():
    module = Add()
    with module.register_forward_hook(lambda module, args, output: output * 0):
        assert module(tp.ones(1)).item() == 0
    assert module(tp.ones(1)).item() == 2


def test_hooks_called_in_any_case():
    module = Fails()
    calls = []
    module.register_forward_hook(lambda *args: calls.append("skipped"))
    module.register_forward_hook(
        lambda module, args, output: calls.append(output), always_call=True
    )
    with pytest.raises(RuntimeError, match="failed"):
        module(tp.ones(1))
    assert calls == [None]

    def breaks(*args):
        raise ValueError("hook")

    module.register_forward_hook(breaks, always_call=True)
    with (
        pytest.warns(UserWarning, match="silenced as another error was raised in forward: hook"),
        pytest.raises(RuntimeError, match="failed"),
    ):
        module(tp.ones(1))


def test_a_hook_called_in_any_case_is_called_once():
    module = Add()
    calls = []

    def breaks(*args):
        raise ValueError("hook")

    module.register_forward_hook(lambda *args: calls.append(1), always_call=True)
    module.register_forward_hook(breaks)
    with pytest.raises(ValueError, match="hook"):
        module(tp.ones(1))
    assert calls == [1]


REGISTRATIONS = {
    "forward_pre": lambda module, **options: module.register_forward_pre_hook(print, **options),
    "forward": lambda module, **options: module.register_forward_hook(print, **options),
    "forward of all": lambda module, **options: nn.modules.module.register_module_forward_hook(
        print, **options
    ),
}


@pytest.mark.parametrize("leaving", [False, True])
@pytest.mark.parametrize("name", REGISTRATIONS)
def test_nothing_is_left_of_a_hook_that_was_taken_away(name, leaving):
    def entries():
        own = [getattr(module, table) for table in HOOK_TABLES]
        return [len(table) for table in own + [vars(global_hooks)[name] for name in everywhere]]

    module = Add()
    everywhere = [name for name in vars(global_hooks) if name.startswith("forward")]
    before = entries()
    options = [{"with_kwargs": True}]
    if name != "forward_pre":
        options += [{"always_call": True}, {"with_kwargs": True, "always_call": True}]
    for each in options:
        handle = REGISTRATIONS[name](module, **each)
        assert sum(entries()) - sum(before) == 1 + len(each)
        assert handle.hooks_dict_ref()[handle.id] is print
        if leaving:
            with handle:
                pass
        else:
            handle.remove()
            handle.remove()
        assert entries() == before


@pytest.mark.parametrize("extra", [1, 2])
def test_handles_of_ones_own_dictionaries(extra):
    hooks, notes = OrderedDict(), [OrderedDict() for _ in range(extra)]
    handle = tp.utils.hooks.RemovableHandle(hooks, extra_dict=notes[0] if extra == 1 else notes)
    for table in (hooks, *notes):
        table[handle.id] = table[-1] = print
    assert handle.hooks_dict_ref() is hooks
    handle.remove()
    assert [list(table) for table in (hooks, *notes)] == [[-1]] * (1 + extra)


# --- backward ---


def test_full_backward_hook():
    module = nn.Linear(2, 1)
    calls = []
    module.register_full_backward_hook(
        lambda module, grad_input, grad_output: calls.append(
            (grad_input[0].tolist(), grad_output[0].tolist())
        )
    )
    x = tp.ones(3, 2, requires_grad=True)
    (module(x) * tp.tensor([[1.0], [2.0], [3.0]])).sum().backward()
    row = module.weight.tolist()[0]
    expected = [[factor * value for value in row] for factor in (1.0, 2.0, 3.0)]
    assert len(calls) == 1
    assert calls[0][1] == [[1.0], [2.0], [3.0]]
    for got, want in zip(calls[0][0], expected, strict=True):
        assert got == pytest.approx(want)
    assert module.bias.grad.tolist() == [6.0]


def test_hooks_replace_gradients():
    module = Add()
    module.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 2,))
    module.register_full_backward_hook(lambda module, grad_input, grad_output: grad_input[0] * 5)
    x = tp.ones(1, requires_grad=True)
    module(x).backward()
    assert x.grad.tolist() == [10.0]


def test_backward_hooks_without_gradient_for_the_inputs():
    module = nn.Linear(1, 1)
    calls = []
    module.register_full_backward_hook(lambda *args: calls.append(args[1:]))
    with pytest.warns(UserWarning, match="since no inputs require gradients"):
        module(tp.ones(1)).sum().backward()
    assert calls == [((None,), (tp.ones(1),))]
    module.register_full_backward_hook(lambda *args: (tp.ones(1),))
    with (
        pytest.warns(UserWarning, match="since no inputs require gradients"),
        pytest.raises(RuntimeError, match="no input requires gradient"),
    ):
        module(tp.ones(1)).sum().backward()


def test_entries_for_every_argument():
    class Mix(nn.Module):
        def forward(self, number, x, y):
            return x * number, y

    module = Mix()
    calls = []
    module.register_full_backward_hook(lambda *args: calls.append(args[1:]))
    x = tp.ones(1, requires_grad=True)
    first, second = module(3.0, x, tp.ones(1))
    (first + second).backward()
    (grad_input, grad_output) = calls[0]
    assert [None if g is None else g.tolist() for g in grad_input] == [None, [3.0], None]
    assert [None if g is None else g.tolist() for g in grad_output] == [[1.0], None]


def test_wrong_numbers_of_gradients():
    module = Add()
    module.register_full_backward_hook(lambda module, grad_input, grad_output: grad_input * 2)
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        module(tp.ones(1, requires_grad=True)).backward()


def test_no_backward_hooks_where_nothing_is_recorded():
    module = Add()
    calls = []
    module.register_full_backward_hook(lambda *args: calls.append(1))
    with tp.no_grad():
        assert not module(tp.ones(1, requires_grad=True)).requires_grad
    assert not module(tp.ones(1)).requires_grad
    assert calls == []


def test_outputs_that_hooks_cannot_watch():
    class Dictionary(nn.Module):
        def forward(self, x):
            return {"x": x}

    module = Dictionary()
    module.register_full_backward_hook(lambda *args: None)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple"):
        module(tp.ones(1, requires_grad=True))


def test_several_calls_are_kept_apart():
    module = Add()
    calls = []
    module.register_full_backward_hook(lambda m, grad_input, grad_output: calls.append(grad_output))
    x = tp.ones(1, requires_grad=True)
    (module(x) * 2 + module(x) * 3).backward()
    assert sorted(call[0].item() for call in calls) == [2.0, 3.0]
    assert x.grad.item() == 5


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")  # torch's
def test_torch_calls_with_the_same_gradients():
    torch = pytest.importorskip("torch", reason="values are compared with torch's")
    seen = []
    for library in (tp, torch):
        net = library.nn.Sequential(library.nn.Linear(2, 2), library.nn.Linear(2, 1))
        with library.no_grad():
            for parameter in net.parameters():
                parameter.fill_(0.5)
        calls = []
        for module in net:
            module.register_full_backward_pre_hook(
                lambda module, grad_output, calls=calls: calls.append(grad_output[0].tolist())
            )
            module.register_full_backward_hook(
                lambda module, grad_input, grad_output, calls=calls: calls.append(
                    [None if g is None else g.tolist() for g in (*grad_input, *grad_output)]
                )
            )
        net(library.tensor([[1.0, 2.0]])).sum().backward()
        seen.append(calls)
    assert seen[0] == seen[1]


# --- all modules ---


def test_global_hooks():
    order = []
    handles = [
        nn.register_module_forward_pre_hook(lambda module, args: order.append("pre")),
        nn.register_module_forward_hook(lambda module, args, output: order.append("post")),
        nn.register_module_full_backward_pre_hook(lambda module, grad: order.append("back pre")),
        nn.register_module_full_backward_hook(lambda *args: order.append("back")),
    ]
    module = Add()
    module.register_forward_hook(lambda *args: order.append("own"))
    module(tp.ones(1, requires_grad=True)).backward()
    for handle in handles:
        handle.remove()
    assert order == ["pre", "post", "own", "back pre", "back"]
    module(tp.ones(1))
    assert order[-1] == "own"


def test_global_backward_hooks_of_the_older_form():
    order = []
    module = Add()
    module.register_backward_hook(lambda *args: order.append("own"))
    with nn.modules.module.register_module_backward_hook(lambda *args: order.append("all")):
        module(tp.ones(1, requires_grad=True)).backward()
    assert order == ["all", "own"]


def test_registration_hooks():
    seen = []
    handles = [
        nn.register_module_parameter_registration_hook(
            lambda module, name, value: seen.append(name)
        ),
        nn.register_module_buffer_registration_hook(lambda module, name, value: value + 1),
        nn.register_module_module_registration_hook(lambda *args: nn.Identity()),
    ]
    module = nn.Module()
    module.weight = nn.Parameter(tp.ones(1))
    module.register_buffer("mean", tp.zeros(1))
    module.child = nn.Linear(1, 1)
    for handle in handles:
        handle.remove()
    assert seen == ["weight", "weight", "bias"]
    assert module.mean.item() == 1
    assert isinstance(module.child, nn.Identity)


def test_hooks_of_all_modules_are_where_torch_documents_them():
    from tensorplug.nn.modules.module import Module, register_module_forward_hook

    assert Module is nn.Module
    calls = []
    with register_module_forward_hook(lambda module, args, output: calls.append(type(module))):
        nn.Sequential(Add())(tp.ones(1))
    assert calls == [Add, nn.Sequential]


OUTPUTS = {
    "tensor": lambda a, b: a,
    "tuple": lambda a, b: (a, b),
    "list": lambda a, b: [a, b],
    "dict": lambda a, b: {"first": a, "second": b},
    "dict with others": lambda a, b: {"none": None, "first": a},
    "list of a dict": lambda a, b: [{"first": a}],
}


@pytest.mark.filterwarnings("ignore:Using.*non-full backward hook:FutureWarning")
@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
def test_backward_hooks_of_the_older_form_are_called_whatever_comes_out(output):
    torch = pytest.importorskip("torch", reason="what hooks get is compared with torch's")

    def seen(lib):
        class Outputs(lib.nn.Module):
            def forward(self, x):
                self.first = x.sin()
                return output(self.first, x.cos())

        calls = []
        module = Outputs()
        module.register_backward_hook(
            lambda _, inputs, outputs: calls.append([inputs[0].tolist(), outputs[0].tolist()])
        )
        x = lib.ones(2, requires_grad=True)
        returned = module(x)
        first = module.first if isinstance(returned, (dict, list)) else returned
        (first[0] if isinstance(first, tuple) else first).sum().backward()
        return calls, x.grad.tolist()

    (calls, gradient), (wanted, wanted_gradient) = seen(tp), seen(torch)
    np.testing.assert_allclose(np.array(calls), np.array(wanted), rtol=1e-6)
    np.testing.assert_allclose(gradient, wanted_gradient, rtol=1e-6)


@pytest.mark.parametrize("empty", [[], {}, None, "text", [None]], ids=repr)
def test_a_backward_hook_of_the_older_form_without_a_tensor(empty):
    class Nothing(nn.Module):
        def forward(self, x):
            return empty

    module = Nothing()
    module.register_backward_hook(lambda *args: 1 / 0)
    with pytest.warns(FutureWarning, match="does not return a single Tensor"):
        assert module(tp.ones(1, requires_grad=True)) is empty
