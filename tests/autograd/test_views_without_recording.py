"""Views made in no_grad and inference mode, views of inference tensors, and writes to both, against torch."""

from __future__ import annotations

import itertools
import re

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="compares with torch")

# Each takes a tensor (2, 3, 4); one view, or several.
VIEWS = {
    "as_strided": lambda x: x.as_strided((2, 2), (4, 1), 1),
    "chunk": lambda x: x.chunk(2, 2),
    "diagonal": lambda x: x.diagonal(),
    "expand": lambda x: x.expand(5, 2, 3, 4),
    "flatten": lambda x: x.flatten(),
    "index": lambda x: x[:, 1:, None],
    "movedim": lambda x: x.movedim(0, 2),
    "narrow": lambda x: x.narrow(1, 0, 2),
    "permute": lambda x: x.permute(2, 0, 1),
    "reshape": lambda x: x.reshape(6, 4),
    "row": lambda x: x[1],
    "select": lambda x: x.select(1, 0),
    "split": lambda x: x.split(1, 1),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "transpose": lambda x: x.transpose(0, 1),
    "unbind": lambda x: x.unbind(1),
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "unfold": lambda x: x.unfold(2, 2, 2),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "view": lambda x: x.view(-1),
    "view_as": lambda x: x.view_as(x),
}


def one(views):
    return views[0] if isinstance(views, (tuple, list)) else views


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("tracked", [False, True])
def test_a_view_of_an_inference_tensor_is_a_leaf_without_gradient(name: str, tracked: bool) -> None:
    facts = []
    for lib in (tp, torch):
        with lib.inference_mode():
            made = lib.ones(2, 3, 4, requires_grad=tracked)
        for _ in range(3):  # a call that is known goes another way than the first
            view = one(VIEWS[name](made))
        assert view.is_inference()
        facts.append((view.requires_grad, view._is_view(), view.is_leaf, (view * 2).requires_grad))
    assert facts[0] == facts[1]


def outcome(lib, mode, deep, direct, tracked, view_of, write):
    """Return what becomes of a view, made in a mode, when it or its base is written to in normal mode."""
    base = lib.ones(2, 3, 4, requires_grad=tracked).clone()
    with getattr(lib, mode)():
        view = one(view_of(base))
    if deep:
        view = view.unsqueeze(0)
    try:
        write(view if direct else base)
        view.grad_fn  # noqa: B018
    except RuntimeError as error:
        found = re.search(
            r"(view of a )?view (which )?was created in (no_grad|inference) mode and (its base|is being)",
            str(error),
        )
        return "refused" if found is None else found.group()
    return view.requires_grad


@pytest.mark.parametrize("name", [name for name in VIEWS if name != "expand"])
def test_writes_to_views_from_modes_without_recording(name: str) -> None:
    for mode, deep, direct, tracked in itertools.product(
        ("no_grad", "inference_mode"), (False, True), (False, True), (False, True)
    ):
        outcomes = [
            outcome(lib, mode, deep, direct, tracked, VIEWS[name], lambda x: x.mul_(3.0))
            for lib in (tp, torch)
        ]
        assert outcomes[0] == outcomes[1], (mode, deep, direct, tracked)


@pytest.mark.parametrize("name", VIEWS)
def test_views_that_are_recorded_follow_their_base(name: str) -> None:
    gradients = []
    for lib in (tp, torch):
        leaf = lib.arange(24.0).reshape(2, 3, 4).requires_grad_()
        base = leaf * 1
        with lib.no_grad():
            VIEWS[name](base)  # another one, not used again
        view = VIEWS[name](base)
        if not isinstance(view, (tuple, list)):  # of several, torch refuses it
            base.mul_(3.0)
        one(view).sum().backward()
        gradients.append(leaf.grad.tolist())
    assert gradients[0] == gradients[1]


WRITES = {
    "add": lambda L, x, out: L.add(x, 1, out=out),
    "bmm": lambda L, x, out: L.bmm(x, x, out=out),
    "cat": lambda L, x, out: L.cat([x[:1], x[1:]], out=out),
    "cumsum": lambda L, x, out: L.cumsum(x, 0, out=out),
    "exp": lambda L, x, out: L.exp(x, out=out),
    "sort": lambda L, x, out: L.sort(x, out=(out, L.empty(0, dtype=L.int64))),
    "sum": lambda L, x, out: L.sum(L.stack([x, x]), 0, out=out),
    "zeros": lambda L, x, out: L.zeros(2, 2, 2, out=out),
    "add_": lambda L, x, out: out.add_(1),
    "copy_": lambda L, x, out: out.copy_(x),
    "fill_": lambda L, x, out: out.fill_(1),
    "index_put_": lambda L, x, out: out.index_put_((L.tensor([0]),), L.tensor(1.0)),
    "normal_": lambda L, x, out: out.normal_(),
    "setitem": lambda L, x, out: out.__setitem__(0, 1.0),
    "transpose_": lambda L, x, out: out.transpose_(0, 1),
    "zero_": lambda L, x, out: out.zero_(),
}


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_inference_tensors_are_not_written_to_in_normal_mode(name: str, view: bool) -> None:
    for lib in (tp, torch):
        with lib.inference_mode():
            made = lib.ones(2, 2, 2)
        target = made.view(2, 2, 2) if view else made
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
            WRITES[name](lib, lib.ones(2, 2, 2), target)
        if lib is tp:  # torch writes first
            assert bool((made == 1).all())
        with lib.inference_mode():
            WRITES[name](lib, lib.ones(2, 2, 2), target)
