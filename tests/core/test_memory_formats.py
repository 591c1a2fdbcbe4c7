"""Memory formats: the strides of copies and new tensors, compared with torch's."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import tensorplug as tp
from tensorplug.plugin import array_api_backend

torch: Any = pytest.importorskip("torch", reason="torch is the reference of these tests")

F = tp.nn.functional
FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")


@st.composite
def layouts(draw: Any, min_dims: int = 0) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Draw the shape and strides of a permuted, sliced and expanded tensor."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=min_dims, max_size=5))
    gaps = [draw(st.sampled_from((1, 1, 2))) for _ in sizes]
    base = torch.empty([size * gap for size, gap in zip(sizes, gaps, strict=True)])
    shown = base[tuple([slice(None, None, gap) for gap in gaps])]
    shown = shown.permute(draw(st.permutations(range(len(sizes)))))
    if draw(st.booleans()):
        shown = shown.expand([3 if size == 1 else size for size in shown.shape])
    return tuple(shown.shape), shown.stride()


def pair(shape: Any, strides: Any, device: str = "cpu") -> tuple[Any, Any]:
    """Return a tensor of ours and one of torch's with a layout and the same numbers."""
    reach = 1 + sum([(n - 1) * step for n, step in zip(shape, strides, strict=True)])
    ours = tp.arange(float(reach)).to(device).as_strided(shape, strides)
    return ours, torch.arange(float(reach)).as_strided(shape, strides)


def same(ours: Any, theirs: Any) -> None:
    """Compare shape and strides."""
    assert (tuple(ours.shape), ours.stride()) == (tuple(theirs.shape), theirs.stride())


def steps(tensor: Any) -> list[int]:
    """Return the strides that say something: along a dimension of size 1 there are none."""
    return [s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1]


def outcome(call: Any, *args: Any, **options: Any) -> Any:
    """Return shape and strides of what a call returns, what it is, or the error's type."""
    try:
        result = call(*args, **options)
    except (RuntimeError, TypeError) as error:
        return type(error)
    return result if isinstance(result, bool) else (tuple(result.shape), result.stride())


@settings(max_examples=60, deadline=None)
@given(st.permutations(range(3)), st.sampled_from(("cat", "stack", "hstack", "vstack")))
def test_what_is_joined_can_be_viewed(order: list[int], name: str) -> None:
    ours, theirs = (
        getattr(lib, name)([lib.ones(2, 3, 4).permute(*order)] * 2) for lib in (tp, torch)
    )
    assert steps(ours) == steps(theirs)
    assert ours.view(-1).shape == (48,)


@st.composite
def images(draw: Any) -> tuple[Any, Any]:
    """Draw images in one of the memory formats, perhaps with gaps, as ours and as torch's."""
    dims = draw(st.sampled_from((4, 5)))
    sizes = draw(st.lists(st.integers(1, 3), min_size=dims, max_size=dims))
    gaps = [draw(st.sampled_from((1, 1, 1, 2))) for _ in sizes]
    cut = tuple([slice(None, None, gap) for gap in gaps])
    inside = draw(st.booleans())
    found = []
    for lib in (tp, torch):
        base = lib.arange(float(math.prod([s * g for s, g in zip(sizes, gaps, strict=True)])))
        base = base.reshape([s * g for s, g in zip(sizes, gaps, strict=True)])
        if inside:
            last = lib.channels_last if dims == 4 else lib.channels_last_3d
            base = base.to(memory_format=last)
        found.append(base[cut])
    return found[0], found[1]


@settings(max_examples=150, deadline=None)
@given(
    images(),
    st.sampled_from(("cat", "stack", "hstack", "vstack", "dstack")),
    st.booleans(),
    st.data(),
)
def test_joined_images_lie_as_in_torch(pair: Any, name: str, mixed: bool, data: Any) -> None:
    ours, theirs = pair
    dim = data.draw(st.integers(0, ours.dim() - (name == "cat")))
    # Behind a dimension of size 1 torch decides by its stride, which arrays do not tell.
    assume(dim < ours.dim() or 1 not in ours.shape)
    # Images that lie channels last, and are stacked behind their last dimension, lie in rows in torch.
    assume(dim < ours.dim() or dim < 3 or ours.stride()[1] > 1)
    place = (dim,) if name in ("cat", "stack") else ()
    others = [(x, x.contiguous() if mixed else x, x) for x in (ours, theirs)]
    joined, expected = (
        getattr(lib, name)(list(xs), *place) for lib, xs in zip((tp, torch), others, strict=True)
    )
    assert steps(joined) == steps(expected)
    assert np.array_equal(joined.numpy(), expected.numpy())


COPIES = {
    "clone": lambda x, f: x.clone(memory_format=f),
    "contiguous": lambda x, f: x.contiguous(memory_format=f),
    "is_contiguous": lambda x, f: x.is_contiguous(memory_format=f),
    "to": lambda x, f: x.to(memory_format=f),
    "to copy": lambda x, f: x.to(memory_format=f, copy=True),
    "double": lambda x, f: x.double(memory_format=f),
    "cpu": lambda x, f: x.cpu(memory_format=f),
}


@settings(max_examples=150, deadline=None)
@given(layouts())
def test_copies_have_torch_s_strides_and_values(layout: Any) -> None:
    ours, theirs = pair(*layout)
    same(ours.clone(), theirs.clone())
    assert ours.clone().tolist() == theirs.tolist()
    for name in FORMATS:
        for what, call in COPIES.items():
            got = outcome(call, ours, getattr(tp, name))
            wanted = outcome(call, theirs, getattr(torch, name))
            assert got == wanted, (what, name)
            if isinstance(got, tuple):
                assert call(ours, getattr(tp, name)).tolist() == theirs.tolist(), (what, name)


@settings(max_examples=60, deadline=None)
@given(layouts())
def test_new_tensors_have_torch_s_strides(layout: Any) -> None:
    ours, theirs = pair(*layout)
    for name in ("empty_like", "zeros_like", "ones_like", "rand_like", "randn_like"):
        make, reference = getattr(tp, name), getattr(torch, name)
        same(make(ours), reference(theirs))
        for order in FORMATS:
            got = outcome(make, ours, memory_format=getattr(tp, order))
            wanted = outcome(reference, theirs, memory_format=getattr(torch, order))
            assert got == wanted, (name, order)
    same(tp.full_like(ours, 2), torch.full_like(theirs, 2))
    same(tp.randint_like(ours, 5), torch.randint_like(theirs, 5))
    assert bool((tp.full_like(ours, 2) == 2).all())
    for order in FORMATS:
        got = outcome(tp.empty, ours.shape, memory_format=getattr(tp, order))
        wanted = outcome(torch.empty, theirs.shape, memory_format=getattr(torch, order))
        assert got == wanted, order


@settings(max_examples=60, deadline=None)
@given(layouts())
def test_meta_agrees_with_cpu(layout: Any) -> None:
    shape, strides = layout
    reach = 1 + sum([(n - 1) * step for n, step in zip(shape, strides, strict=True)])
    for call in (
        lambda x: x.clone(),
        lambda x: x.contiguous(),
        lambda x: tp.zeros_like(x),
        lambda x: tp.rand_like(x),
        lambda x: x.exp(),
        lambda x: x + 1,
        lambda x: x * x.flip(0) if x.ndim else x,
        lambda x: x > x[..., :1] if x.ndim else x,
        lambda x: x.to(tp.float64),
    ):
        there = call(tp.empty(reach, device="meta").as_strided(shape, strides))
        here = call(tp.zeros(reach).as_strided(shape, strides))
        assert there.is_meta
        assert steps(there) == steps(here)
    for order in (tp.channels_last, tp.channels_last_3d):
        there, here = tp.empty(shape, device="meta"), tp.empty(shape)
        assert outcome(there.clone, memory_format=order) == outcome(here.clone, memory_format=order)


@settings(max_examples=60, deadline=None)
@given(layouts())
def test_pointwise_ops_keep_the_order_of_a_dense_tensor(layout: Any) -> None:
    ours, theirs = pair(*layout)
    if 0 in ours.stride():
        return  # which order of elements that share memory is kept, libraries see differently
    for call in (lambda x: x.exp(), lambda x: x + 1, lambda x: x * x, lambda x: x > 2):
        assert steps(call(ours)) == steps(call(theirs))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(layouts(), st.integers(2, 3))
def test_other_devices_keep_the_order(layout: Any, scale: int) -> None:
    tp.plugins.register(array_api_backend(np, device_type="formats"))
    try:
        ours, theirs = pair(*layout)
        there = ours.to("formats")
        same(there, theirs.clone())
        same((there * scale).clone(), torch.empty(there.shape))  # its kernels make rows
        same(there.clone(), theirs.clone())
        same(tp.zeros_like(there), torch.zeros_like(theirs))
        assert there.to("cpu").tolist() == theirs.tolist()
        same(there.to("cpu"), theirs.clone())
        order = tuple(range(there.ndim))[::-1]
        assert there.permute(order).clone().tolist() == theirs.permute(order).tolist()
    finally:
        tp.plugins.unregister("formats")


def test_a_device_without_strides_keeps_its_own_order(monkeypatch: pytest.MonkeyPatch) -> None:
    tp.plugins.register(array_api_backend(np, device_type="formats"))
    try:
        runtime: Any = tp.zeros(1, device="formats")._key.runtime
        monkeypatch.setattr(runtime, "capabilities", runtime.capabilities - {"views"})
        x = tp.arange(120.0).reshape(2, 3, 4, 5)
        there = x.to("formats")
        for moved in (
            there.clone(memory_format=tp.channels_last),
            there.contiguous(memory_format=tp.channels_last),
            there.to(memory_format=tp.channels_last),
            x.contiguous(memory_format=tp.channels_last).to("formats"),
        ):
            assert moved.stride() == (60, 20, 5, 1)
            assert not moved.is_contiguous(memory_format=tp.channels_last)
            assert moved.tolist() == x.tolist()
        turned = x.permute(3, 0, 1, 2)
        assert tp.zeros_like(turned, device="formats").stride() == (24, 12, 4, 1)
    finally:
        tp.plugins.unregister("formats")


def test_gradients_go_through_copies() -> None:
    x = tp.arange(24.0).reshape(1, 2, 3, 4).requires_grad_()
    y = x.contiguous(memory_format=tp.channels_last)
    assert y.grad_fn is not None
    assert not y._is_view()
    weight = tp.arange(24.0).reshape(1, 2, 3, 4)
    (first,) = tp.autograd.grad((y * y * weight).sum(), x, create_graph=True)
    assert first.tolist() == (2 * x * weight).tolist()
    (second,) = tp.autograd.grad(first.sum(), x)
    assert second.tolist() == (2 * weight).tolist()
    for copy in (
        lambda v: v.clone(memory_format=tp.channels_last),
        lambda v: v.permute(2, 0, 3, 1).clone(),
        lambda v: v.to(memory_format=tp.channels_last),
    ):
        point = x.detach().double().requires_grad_()
        assert tp.autograd.gradcheck(copy, (point,), check_forward_ad=True)
        assert tp.autograd.gradgradcheck(copy, (point,))
    y = y.detach()
    y.clone()[0] = 7.0
    assert y.tolist() == x.tolist()


def test_writes_into_a_copy_leave_the_original() -> None:
    x = tp.zeros(2, 3).t()
    copy = x.clone()
    copy[0, 0] = 1.0
    copy.add_(1)
    assert x.sum().item() == 0
    assert copy.tolist() == [[2.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    assert copy._version == 2
    with tp.inference_mode():
        assert x.clone().is_inference()


def test_vmap_and_grad_see_samples() -> None:
    x = tp.arange(48.0).reshape(2, 2, 3, 4)
    turned = tp.func.vmap(lambda v: v.permute(2, 0, 1).clone() * 2)(x)
    assert turned.tolist() == (x.permute(0, 3, 1, 2) * 2).tolist()
    last = tp.func.vmap(lambda v: v[None].clone(memory_format=tp.channels_last), in_dims=1)(x)
    assert last.tolist() == x.permute(1, 0, 2, 3)[:, None].tolist()
    slope = tp.func.grad(lambda v: (v.t().clone() ** 2).sum())(x[0, 0])
    assert slope.tolist() == (2 * x[0, 0]).tolist()


@pytest.mark.parametrize("order", [*FORMATS, None])
@pytest.mark.parametrize("sizes", [(2, 3, 4, 5), (2, 3, 1, 1), (6,), (2, 3, 1, 4, 5)])
def test_resize(sizes: tuple[int, ...], order: str | None) -> None:
    def results(library: Any) -> list[Any]:
        chosen = None if order is None else getattr(library, order)
        like = library.arange(120.0)[: int(np.prod(sizes))].reshape(sizes)
        last = {4: "channels_last", 5: "channels_last_3d"}.get(len(sizes), "contiguous_format")
        turned = like.contiguous(memory_format=getattr(library, last))
        found: list[Any] = []
        for call, shape in (("resize_", sizes), ("resize_as_", like), ("resize_as_", turned)):
            target = library.arange(120.0)
            try:
                result = getattr(target, call)(shape, memory_format=chosen)
                found.append((result.stride(), result.tolist()))
            except RuntimeError:
                found.append("RuntimeError")
        return found

    assert results(tp) == results(torch)


def test_modules() -> None:
    for library in (tp, torch):
        model = library.nn.Sequential(
            library.nn.Conv2d(3, 4, 2), library.nn.BatchNorm2d(4), library.nn.Linear(4, 2)
        )
        before = list(model.parameters())
        model.to(memory_format=library.channels_last)
        assert [a is b for a, b in zip(before, model.parameters(), strict=True)] == [True] * 6
        assert model[0].weight.stride() == (12, 1, 6, 3)
        assert model[2].weight.stride() == (4, 1)
        with pytest.raises(RuntimeError, match="rank 4"):
            library.nn.Conv3d(3, 4, 2).to(memory_format=library.channels_last)
        with pytest.raises(TypeError):
            model.to(memory_format=3)
        layer = library.nn.Conv3d(3, 4, 2)
        convert = library.nn.utils.convert_conv3d_weight_memory_format
        assert convert(layer, library.channels_last_3d) is layer
        assert layer.weight.stride() == (24, 1, 12, 6, 3)
    x = tp.randn(2, 3, 5, 5)
    model = tp.nn.Conv2d(3, 4, 2)
    wanted = model(x)
    got = model.to(memory_format=tp.channels_last)(x.to(memory_format=tp.channels_last))
    tp.testing.assert_close(got, wanted)


@pytest.mark.parametrize("value", [3, "channels_last", True])
def test_anything_else_is_refused(value: Any) -> None:
    x = tp.zeros(1, 2, 3, 4)
    for call in (
        x.clone,
        x.contiguous,
        x.is_contiguous,
        x.to,
        x.float,
        partial(x.resize_, x.shape),
        lambda **given: tp.zeros_like(x, **given),
        lambda **given: tp.empty(2, **given),
    ):
        with pytest.raises(TypeError, match="memory_format"):
            call(memory_format=value)
    with pytest.raises(RuntimeError, match="rank 4 tensor to use channels_last format, got shape"):
        tp.zeros(2, 3).contiguous(memory_format=tp.channels_last)


@pytest.mark.parametrize("chosen", ["contiguous_format", "preserve_format", "channels_last"])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 3, 1, 2), (3, 2, 1, 0), (1, 0, 3, 2)], ids=str)
def test_conversions_keep_values_in_every_order(chosen: str, order: tuple[int, ...]) -> None:
    """In whichever order numbers lie, and shall lie, each stays in its place."""
    numbers = tp.arange(36.0).reshape(2, 3, 2, 3)
    inverse = [order.index(dim) for dim in range(4)]
    source = numbers.permute(order).contiguous().permute(inverse)
    format_ = getattr(tp, chosen)
    expected = numbers.tolist()
    for dtype in (tp.bool, tp.uint8, tp.int64, tp.float16, tp.float32, tp.float64, tp.complex64):
        wanted = numbers.to(dtype).tolist()
        for leaf in (source, source.clone().requires_grad_()):
            made = leaf.to(dtype, memory_format=format_)
            assert made.tolist() == wanted
            # What is of the dtype may be the tensor itself, as in torch.
            if chosen != "preserve_format" and dtype is not source.dtype:
                assert made.is_contiguous(memory_format=format_)
    assert source.clone(memory_format=format_).tolist() == expected
    if chosen != "preserve_format":
        made = source.contiguous(memory_format=format_)
        assert made.tolist() == expected
        assert made.contiguous(memory_format=format_) is made


#: Ops whose results lie row by row in torch, however their input does.
IN_ROWS = {
    "masked_fill": lambda x: x.masked_fill(x > 3, 0.0),
    "masked_fill by name": lambda x: tp.masked_fill(input=x, mask=x > 3, value=0.0),
    "renorm": lambda x: x.renorm(2, 0, 1.0),
    "mvlgamma": lambda x: (x + 3).mvlgamma(2),
    "roll": lambda x: x.roll(1, 1),
    "tril": lambda x: x.tril(),
    "triu": lambda x: x.triu(),
    "logsigmoid": F.logsigmoid,
    "rrelu": F.rrelu,
    "rrelu in training": lambda x: F.rrelu(x, training=True),
    "instance_norm": F.instance_norm,
    "conv1d": lambda x: F.conv1d(x[:, :, 0], tp.ones(2, 3, 1)),
    "conv_transpose1d": lambda x: F.conv_transpose1d(x[:, :, 0], tp.ones(3, 2, 1)),
    "max_pool1d": lambda x: F.max_pool1d(x[:, :, 0], 2),
    "avg_pool3d": lambda x: F.avg_pool3d(x[..., None].expand(2, 3, 4, 5, 2), 2),
    "adaptive_avg_pool3d": lambda x: F.adaptive_avg_pool3d(x[..., None], 1),
    "adaptive_max_pool3d": lambda x: F.adaptive_max_pool3d(x[..., None], (2, 2, 1)),
}


@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
@pytest.mark.parametrize("name", IN_ROWS)
def test_in_rows_as_in_torch(name, recorded):
    rows = tp.arange(120.0).reshape(2, 3, 4, 5) % 7
    for x in (rows.to(memory_format=tp.channels_last), rows.mT.contiguous().mT):
        for _ in range(3):  # the first calls, and one that is replayed
            result = IN_ROWS[name](x.requires_grad_(recorded))
            assert result.is_contiguous()
            if name != "rrelu in training":
                tp.testing.assert_close(result, IN_ROWS[name](rows), check_stride=True)


def test_in_place_the_order_stays():
    x = tp.arange(6.0).reshape(2, 3).t()
    for write in (lambda: x.masked_fill_(x > 4, 9.0), x.tril_, x.triu_, lambda: x.renorm_(2, 0, 1)):
        write()
        assert x.stride() == (1, 3)
