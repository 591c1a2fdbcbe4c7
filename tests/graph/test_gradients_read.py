"""Compiled programs that read the gradients which tensors have accumulated: those of state, and others."""

import pytest

import tensorplug as tp
from tensorplug import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        tp.manual_seed(0)
        self.layer = nn.Linear(2, 2)
        self.register_buffer("shift", tp.zeros(2))


def used(model, x):
    found = model.layer.weight.grad
    return model.layer(x) if found is None else model.layer(x) * found.sum() + found


def asked_for(model, x):
    return model.layer(x) * (1 if model.layer.weight.grad is None else 2) + (
        model.shift.grad is None
    )


def of_all(model, x):
    known = [p.grad for p in model.parameters() if p.grad is not None]
    return model.layer(x) + sum(g.abs().sum() for g in known)


def of_a_global(model, x):
    return model.layer(x) if other.grad is None else model.layer(x) * other.grad


def of_an_argument(model, x):
    return model.layer(x) * (1 if x.grad is None else 3)


def of_what_is_made(model, x):
    y = (model.layer(x).detach() * 2).requires_grad_()
    return y * (1 if y.grad is None else 3)


def converted(model, x):
    model.layer = model.layer.to(tp.float32)
    return model.layer(x)


other = tp.ones(2, requires_grad=True)


def forward(model, x):
    model.layer(x).sum().backward()


def in_place(model, x):
    if model.layer.weight.grad is not None:
        model.layer.weight.grad.mul_(2)


def to_none(model, x):
    model.zero_grad()
    other.grad = x.grad = None


def to_another(model, x):
    model.layer.weight.grad = tp.full((2, 2), 3.0)
    other.grad = x.grad = tp.full((2,), 2.0)


def nothing(model, x):
    pass


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    "program", [used, asked_for, of_all, of_a_global, of_an_argument, of_what_is_made, converted]
)
def test_gradients_are_those_of_the_call(program, recorded):
    other.grad = None
    models = Model(), Model()
    arguments = [tp.tensor([1.0, 2.0], requires_grad=recorded) for _ in models]
    compiled = tp.compile(lambda x: program(models[0], x))
    changes = [
        nothing,
        nothing,
        nothing,
        forward,
        forward,
        in_place,
        nothing,
        to_none,
        nothing,
        to_another,
    ]
    for change in [*changes, in_place, nothing, to_none, nothing, nothing]:
        found = []
        for call, x in zip((compiled, lambda x: program(models[1], x)), arguments, strict=True):
            with tp.set_grad_enabled(recorded):
                result = call(x)
                found.append((result.tolist(), result.requires_grad))
        assert found[0] == found[1], change.__name__
        for model, x in zip(models, arguments, strict=True):
            with tp.enable_grad():
                change(model, x)
    if program in (used, asked_for, of_all, of_a_global):
        assert compiled.explain().calls > 3
        assert not compiled.explain().breaks


def in_a_product(x):
    return tp.zeros_like(x).requires_grad_() * x + x.exp()


def told_of(x):
    y = (x * 2).requires_grad_()
    return y.detach() if y.requires_grad else x * 3


def taken_back(x):
    return (x * 2).requires_grad_().exp_().requires_grad_(False) + 1


def returned(x):
    return (x * 2).requires_grad_()


def recorded_within(x):
    y = (x * 2).requires_grad_()
    with tp.enable_grad():
        return y * 3 if y.requires_grad else y


def of_a_view(x):
    return x[0].requires_grad_() + x.detach().requires_grad_()


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    "program", [in_a_product, told_of, taken_back, returned, recorded_within, of_a_view]
)
def test_what_is_made_to_require_a_gradient(program, recorded):
    compiled = tp.compile(program)
    for step in range(5):
        found = []
        for call in (compiled, program):
            x = tp.arange(4.0).reshape(2, 2) + step
            try:
                with tp.set_grad_enabled(recorded):
                    result = call(x)
                found.append(
                    (result.tolist(), result.requires_grad, result.is_leaf, x.requires_grad)
                )
            except RuntimeError as error:
                found.append(str(error))
        assert found[0] == found[1]
    if not recorded and program in (in_a_product, told_of):
        assert compiled.explain().calls == 4
