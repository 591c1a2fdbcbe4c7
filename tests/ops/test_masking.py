"""Choice by a mask, and fill."""

from __future__ import annotations

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="compares with torch")


def test_where_passes_no_gradient_through_the_other_branch() -> None:
    x = tp.tensor([0.0, 4.0], dtype=tp.float64, requires_grad=True)
    tp.where(x > 0, tp.sqrt(tp.where(x > 0, x, 1.0)), 0.0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]


def test_fill_in_place_is_recorded() -> None:
    x = tp.ones(2, requires_grad=True)
    value = tp.tensor(3.0, requires_grad=True)
    y = x * 2
    y.fill_(value)
    gx, gv = tp.autograd.grad(y.sum(), (x, value), materialize_grads=True)
    assert (gx.tolist(), gv.item()) == ([0.0, 0.0], 2.0)


def test_masked_fill_takes_the_dtype_of_the_input() -> None:
    mask = tp.tensor([True, False])
    assert tp.masked_fill(tp.tensor([1, 2]), mask, 2.9).tolist() == [2, 2]
    assert tp.masked_fill(tp.tensor([1.0, 2.0]), mask, tp.tensor(3)).dtype is tp.float32
    with pytest.raises(RuntimeError, match="without overflow"):
        tp.masked_fill(tp.tensor([1.0, 2.0]), mask, 1j)


@pytest.mark.parametrize("size", [1, 100, 70_001])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool", "complex128"])
def test_a_mask_chooses(size: int, dtype: str) -> None:
    values = torch.arange(size) % 7
    for share in (0, 3, 7):
        theirs = values.to(getattr(torch, dtype))
        ours = tp.from_numpy(theirs.numpy())
        mask = values < share
        wanted = theirs[mask].tolist()
        ours_mask = tp.from_numpy(mask.numpy())
        assert ours[ours_mask].tolist() == wanted
        assert tp.masked_select(ours, ours_mask).tolist() == wanted
        assert ours[::2][ours_mask[::2]].tolist() == theirs[::2][mask[::2]].tolist()


def test_what_a_mask_selects_can_be_written_back() -> None:
    x = tp.tensor([1.0, 0.0, 2.0], requires_grad=True)
    y = x * 1
    mask = tp.tensor([True, False, True])
    y[mask] = y[mask] * 2
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 1.0, 2.0]


def test_gradients_of_a_broadcast_selection() -> None:
    mask = tp.tensor([[True, False], [True, True]])
    for shape in ((2,), (2, 1), (3, 2, 2), ()):
        x = tp.randn(shape, dtype=tp.float64, requires_grad=True)
        for chosen in (mask, mask[0]) if len(shape) < 3 else (mask,):
            assert tp.autograd.gradcheck(tp.masked_select, (x, chosen), check_forward_ad=True)
            assert tp.autograd.gradgradcheck(tp.masked_select, (x, chosen))
