"""Programs with functional transforms, compiled: what they return, for data that changes."""

import pytest

import tensorplug as tp

F = tp.nn.functional


def wave(t):
    return t.sin() * t


def whole(t):
    return wave(t).sum()


def filtered(t):
    return F.conv1d(t[None, None], tp.ones(1, 1, 2)).flatten()


PROGRAMS = {
    "grad": tp.func.grad(whole),
    "vjp": lambda x: tp.func.vjp(wave, x)[1](x)[0],
    "jvp": lambda x: tp.func.jvp(wave, (x,), (x,))[1],
    "jvp of softmax": lambda x: tp.func.jvp(lambda t: t.softmax(0), (x,), (x,))[1],
    "jvp of a convolution": lambda x: tp.func.jvp(filtered, (x,), (x,))[1],
    "jacrev": tp.func.jacrev(wave),
    "jacfwd": tp.func.jacfwd(wave),
    "hessian": tp.func.hessian(whole),
    "linearize": lambda x: tp.func.linearize(wave, x)[1](x),
    "vmap": lambda x: tp.vmap(lambda t: t.softmax(0).cumsum(0))(x.reshape(2, 3)),
    "vmap of grad": lambda x: tp.vmap(tp.func.grad(whole))(x.reshape(2, 3)),
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, recorded):
    program = PROGRAMS[name]
    compiled = tp.compile(lambda x: program(x))
    for step in range(4):
        x = ((step + 1) * tp.linspace(-1, 1, 6)).requires_grad_(recorded)
        wanted, found = program(x), compiled(x)
        tp.testing.assert_close(found, wanted)
        assert found.requires_grad == wanted.requires_grad
        if wanted.requires_grad:
            (of_wanted,) = tp.autograd.grad(wanted.sum(), x)
            (of_found,) = tp.autograd.grad(found.sum(), x)
            tp.testing.assert_close(of_found, of_wanted)
    assert str(compiled.explain())
