"""Products of groups of matrices."""

import pytest

import tensorplug as tp
from tensorplug.nn import functional as F

torch = pytest.importorskip("torch")

SHAPES = {
    "rows": ((12, 8), (3, 8, 4), [4, 4, 12]),
    "rows left over": ((12, 8), (2, 8, 4), [4, 8]),
    "columns": ((3, 4, 8), (8, 12), [4, 8, 12]),
    "inner": ((4, 12), (12, 8), [4, 8, 12]),
    "stacks": ((3, 4, 8), (3, 8, 4), None),
}


@pytest.mark.parametrize("name", [name for name in SHAPES if name != "rows left over"])
def test_as_in_torch(name):
    one, other, ends = SHAPES[name]
    a, b = tp.randn(*one, requires_grad=True), tp.randn(*other, requires_grad=True)
    result = F.grouped_mm(a, b, offs=None if ends is None else tp.tensor(ends, dtype=tp.int32))
    result.sin().sum().backward()
    x, y = [torch.tensor(t.detach().numpy(), requires_grad=True) for t in (a, b)]
    offs = None if ends is None else torch.tensor(ends, dtype=torch.int32)
    expected = torch.nn.functional.grouped_mm(x, y, offs=offs)
    expected.sin().sum().backward()
    for ours, theirs in ((result, expected), (a.grad, x.grad), (b.grad, y.grad)):
        tp.testing.assert_close(ours.detach(), tp.from_numpy(theirs.detach().numpy()))


def test_what_no_group_covers_is_zero():
    one, other, ends = SHAPES["rows left over"]
    result = F.grouped_mm(tp.ones(*one), tp.ones(*other), offs=tp.tensor(ends, dtype=tp.int32))
    assert result.sum(1).tolist() == [32.0] * 8 + [0.0] * 4


@pytest.mark.parametrize(
    ("one", "other", "ends", "message"),
    [
        ((4, 8), (7, 4), [4], "cannot be multiplied"),
        ((4, 8), (2, 8, 4), None, "offs is needed"),
        ((2, 4, 8), (2, 8, 4), [1, 2], "only there"),
        ((4, 8), (2, 8, 4), [4], "1 offs for 2 matrices"),
    ],
)
def test_refuses(one, other, ends, message):
    offs = None if ends is None else tp.tensor(ends, dtype=tp.int32)
    with pytest.raises(RuntimeError, match=message):
        F.grouped_mm(tp.ones(*one), tp.ones(*other), offs=offs)


@pytest.mark.parametrize("name", SHAPES)
def test_one_graph_for_all_groups(name):
    one, other, ends = SHAPES[name]
    run = tp.compile(lambda a, b, offs: F.grouped_mm(a.sin(), b, offs=offs) * 2)
    for seed in range(6):
        tp.manual_seed(seed)
        offs = None
        if ends is not None:
            offs = tp.randint(0, ends[-1] + 1, (len(ends),), dtype=tp.int32).sort()[0]
        given = [tp.randn(*shape) for shape in (one, other)]
        ways = []
        for function in (run, lambda a, b, offs: F.grouped_mm(a.sin(), b, offs=offs) * 2):
            leaves = [value.clone().requires_grad_() for value in given]
            result = function(*leaves, offs)
            result.square().sum().backward()
            ways.append([result, *[leaf.grad for leaf in leaves]])
        for a, b in zip(*ways, strict=True):
            assert tp.equal(a, b)
    assert len(run.explain().graphs) == 1
    assert run.explain().calls == 5
