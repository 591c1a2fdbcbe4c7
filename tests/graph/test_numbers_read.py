"""Numbers that a captured program reads, in every way: of what is fixed as it stands, and asserted ones."""

import io

import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.graph import Uncapturable, capture

F = nn.functional


class Program(nn.Module):
    """Reads a number, 2 at first, of what `source` makes, and uses it as `use` does."""

    def __init__(self, source, use):
        super().__init__()
        self.source, self.use = source, use
        self.register_buffer("kept", tp.tensor(2))
        self.register_buffer("left", tp.tensor([1, 2]), persistent=False)
        self.weight = nn.Parameter(tp.tensor(2.0))
        self.constant = [tp.tensor(2)]  # no state of the module's

    def forward(self, x, number):
        return self.use(x * self.weight, self.source(self, x, number))


#: What is fixed as the program stands.
FIXED = {
    "buffer": lambda self, x, number: self.kept,
    "view of a buffer": lambda self, x, number: self.left[1],
    "of two buffers": lambda self, x, number: self.left.sum() - self.kept + 1,
    "constant": lambda self, x, number: self.constant[0] * 1,
    "made of numbers": lambda self, x, number: tp.full((3,), 4).sum() // 6,
    "made of a size": lambda self, x, number: tp.arange(len(x)).max() - 1,
    "changed before it is read": lambda self, x, number: tp.zeros(2).add_(self.left).max(),
}
#: What other runs may have otherwise.
OPEN = {
    "argument": lambda self, x, number: number,
    "made of an argument": lambda self, x, number: self.kept * number - 2,
    "parameter": lambda self, x, number: self.weight.detach(),
    "random": lambda self, x, number: tp.rand(()) * 0 + 2,
    "written by an argument": lambda self, x, number: tp.ones(()).add_(number - 1),
    "written state": lambda self, x, number: self.kept.add_(0),
    "written state, before": lambda self, x, number: (self.kept * 1, self.kept.add_(1))[0],
}
USES = {
    "item": lambda x, n: x * n.item(),
    "int": lambda x, n: x[: int(n)],
    "float": lambda x, n: x + float(n),
    "bool": lambda x, n: x * 3 if n else x,
    "if": lambda x, n: x * 3 if n > 1 else x,
    "tolist": lambda x, n: x * n.reshape(1).tolist()[0],
    "range": lambda x, n: [x * i for i in range(int(n))],
    "format": lambda x, n: x * len(f"{n.item():>9}"),
    "pad": lambda x, n: F.pad(x, (int(n), 1)),
    "pad by tensors": lambda x, n: F.pad(x, (n.to(tp.int64), 1)),
    "one_hot": lambda x, n: F.one_hot(n.reshape(1).to(tp.int64), -1) * 2,
    "reshape": lambda x, n: x.reshape(int(n), -1),
    "view by tensors": lambda x, n: x.view(n.to(tp.int64), -1),
    "expand by tensors": lambda x, n: x[None].expand(n.to(tp.int64), -1, -1),
    "all of several": lambda x, n: x * 3 if (tp.stack([n, n]) > 1).all() else x,
}


def given(number=2):
    return tp.arange(8.0).reshape(4, 2), tp.tensor(number)


def agree(found, wanted):
    if isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            agree(a, b)
    else:
        assert found.dtype is wanted.dtype
        assert tp.equal(found, wanted)


def exported(module, **options):
    file = io.BytesIO()
    tp.export.save(tp.export.export(module, given(), **options), file)
    return tp.export.load(file).module()


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("source", FIXED)
def test_fixed(source, use):
    module = Program(FIXED[source], USES[use])
    wanted = module(*given())
    agree(capture(module, *given())(*given(5)), wanted)
    program = exported(module)
    agree(program(*given(5)), wanted)
    buffers = [buffer for name, buffer in program.named_buffers()]
    if buffers:
        assert any([is_refused(program, buffers[0], change) for change in (2, -4)])


def is_refused(program, buffer, change):
    """Return whether a program does not run once a buffer was changed."""
    buffer.add_(change)
    return run(program, *given()) is REFUSED


#: What a program returns that was captured for other numbers.
REFUSED = object()


def run(program, *args):
    try:
        return program(*args)
    except RuntimeError as error:
        if "for that alone" not in str(error):
            raise
        return REFUSED


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("source", OPEN)
def test_refused(source, use):
    module = Program(OPEN[source], USES[use])
    # A program that writes state, and runs again for an op to be taken apart, may fail by itself.
    with pytest.raises(RuntimeError, match=r"data|invalid for input of size 8"):
        capture(module, *given())
    module = Program(OPEN[source], USES[use])
    with pytest.raises(Uncapturable, match="data"):
        exported(module)
    assert module.kept == 2  # as it was before


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("source", [*FIXED, *list(OPEN)[:5]])
def test_asserted(source, use):
    module = Program((FIXED | OPEN)[source], USES[use])
    program = exported(module, prefer_deferred_runtime_asserts_over_guards=True)
    for number in (2, 2, 1, 3, 0):
        found = run(program, *given(number))
        if found is REFUSED:  # also where a number is read that decides nothing
            assert number != 2
            assert source in OPEN
        else:
            agree(found, module(*given(number)))


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("source", FIXED)
def test_onnx(source, use):
    pytest.importorskip("onnx")
    module = Program(FIXED[source], USES[use])
    loaded = tp.onnx.load(tp.onnx.export(module, given()))
    agree(loaded(*given()), module(*given()))
