"""Views in programs that train: gradients are those of the program; views in the shape that is there go."""

import pytest

import tensorplug as tp
from tensorplug.nn import functional as F


def heads(x, w, b):
    split = F.linear(x, w, b).reshape(4, 3, 2, 3).permute(2, 0, 3, 1)
    return split.unbind(0)[1].flatten(1).sin().sum()


def slices(x, w, b):
    shown = x[1:, ::2].transpose(0, 2).reshape(-1) * x[:3, :3].flatten()[0]
    return shown.sum() + (w * b[:, None]).sum()


def same_shape(x, w, b):
    shown = x.view(x.shape).view(-1).view(4, 3, -1).transpose(0, 2)
    return (shown * b.view(6)[None, 0]).sum() + w.sum()


def expanded(x, w, b):
    shown = b.expand(3, 2, 6).permute(2, 0, 1)[..., None].expand(6, 3, 2, 2)
    return (shown.cos() * w[0, 0]).sum() + x.sum()


def empty(x, w, b):
    return x[:0].view(0, 3, 5).permute(2, 0, 1)[1:].sum() + x.sum() * w.sum() * b.sum()


PROGRAMS = {
    "bias": lambda x, w, b: F.linear(x, w, b).relu().sum(),
    "heads": heads,
    "slices": slices,
    "same shape": same_shape,
    "returned": lambda x, w, b: (F.linear(x, w, b).view(4, 3, 6).mean(1), x.exp().view(4, 3, 5)),
    "expanded": expanded,
    "empty": empty,
}


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name, dtype):
    """Values and gradients agree bit for bit, of results that somebody writes to as well."""
    program = PROGRAMS[name]
    compiled = tp.compile(program)
    leaves = [tp.randn(s, dtype=dtype, requires_grad=True) for s in ((4, 3, 5), (6, 5), (6,))]
    for turn in range(4):
        found = []
        for run in (compiled, program):
            made = run(*leaves)
            made = made if isinstance(made, tuple) else (made,)
            gradients = tp.autograd.grad(
                [m.square().sum() for m in made], leaves, allow_unused=True
            )
            gradients = [g for g in gradients if g is not None]
            if turn > 1:
                for tensor in [*gradients, *[m.detach() for m in made]]:
                    if tensor.is_contiguous():
                        tensor.mul_(-2)
            found.append([*made, *gradients])
        for value, expected in zip(*found, strict=True):
            assert value.shape == expected.shape
            tp.testing.assert_close(value, expected, rtol=0, atol=0)


def test_bias_without_views():
    """The gradient of a bias is a sum in the shape of the bias: nothing shows it once more."""
    compiled = tp.compile(PROGRAMS["bias"])
    x, w, b = (tp.randn(s, requires_grad=True) for s in ((4, 5), (6, 5), (6,)))
    for _ in range(3):
        compiled(x, w, b).backward()
    ((entry,),) = compiled._entries.values()
    backward = entry.training.joint.backward
    same = [n for n in backward if n.op.name == "view" and n.output.shape == n.args[0].shape]
    assert not same
