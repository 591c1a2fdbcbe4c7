"""The ops of torchvision's compiled library against loops over their definitions, without torchvision."""

import itertools
import math

import numpy as np
import pytest
from registering import registered

import tensorplug as tp
from tensorplug.autograd import gradcheck
from tensorplug.compat.torchvision import plugin
from tensorplug.library import registration

RNG = np.random.default_rng(7)
IMAGE = RNG.standard_normal((2, 8, 9, 11))
CORNERS = RNG.random((6, 4)) * 6
REGIONS = np.concatenate(
    [
        np.array([[0], [1], [0], [1], [0], [1.0]]),
        CORNERS[:, :2],
        CORNERS[:, :2] + CORNERS[:, 2:] + 1,
    ],
    1,
)


@pytest.fixture(scope="module")
def ops():
    with registered(plugin):
        yield tp.ops.torchvision


def tensor(array):
    return tp.tensor(array, dtype=tp.float64)


def near(ours, wanted):
    np.testing.assert_allclose(ours.detach().numpy(), wanted, rtol=1e-10, atol=1e-12)


def overlap(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    shared = max(width, 0) * max(height, 0)
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return shared / (sum(areas) - shared)


@pytest.mark.parametrize("threshold", [0.1, 0.4, 0.7])
@pytest.mark.parametrize("count", [0, 1, 60])
def test_nms(ops, count, threshold):
    rng = np.random.default_rng(count)
    boxes = rng.random((count, 4)) * 10
    boxes[:, 2:] += boxes[:, :2]
    scores = rng.random(count)
    kept = []
    for index in np.argsort(-scores):
        if all(overlap(boxes[index], boxes[other]) <= threshold for other in kept):
            kept.append(index)
    assert ops.nms(tensor(boxes), tensor(scores), threshold).tolist() == kept


def sampled(plane, y, x):
    """Return a bilinear sample; within a pixel of the border the border's, beyond that 0."""
    height, width = plane.shape
    if y < -1 or y > height or x < -1 or x > width:
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    down, right = min(top + 1, height - 1), min(left + 1, width - 1)
    dy, dx = y - top, x - left
    upper = plane[top, left] * (1 - dx) + plane[top, right] * dx
    lower = plane[down, left] * (1 - dx) + plane[down, right] * dx
    return upper * (1 - dy) + lower * dy


def aligned_bin(plane, region, scale, bins, at, ratio, offset, least):
    """Return the mean of points in a bin."""
    x1, y1, x2, y2 = region * scale - offset
    high, wide = max(y2 - y1, least) / bins[0], max(x2 - x1, least) / bins[1]
    rows, columns = (ratio, ratio) if ratio > 0 else (math.ceil(high), math.ceil(wide))
    points = [
        sampled(
            plane, y1 + (at[0] + (i + 0.5) / rows) * high, x1 + (at[1] + (j + 0.5) / columns) * wide
        )
        for i, j in itertools.product(range(rows), range(columns))
    ]
    return sum(points) / len(points) if points else 0.0


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [-1, 2])
def test_roi_align(ops, ratio, aligned):
    found = ops.roi_align(tensor(IMAGE), tensor(REGIONS), 0.7, 3, 2, ratio, aligned)
    offset, least = (0.5, -np.inf) if aligned else (0.0, 1.0)
    wanted = [
        [
            [
                [
                    aligned_bin(plane, region[1:], 0.7, (3, 2), (i, j), ratio, offset, least)
                    for j in range(2)
                ]
                for i in range(3)
            ]
            for plane in IMAGE[int(region[0])]
        ]
        for region in REGIONS
    ]
    near(found, wanted)


@pytest.mark.parametrize("ratio", [-1, 2])
def test_ps_roi_align(ops, ratio):
    found, channels = ops.ps_roi_align(tensor(IMAGE), tensor(REGIONS), 0.7, 2, 2, ratio)
    assert tuple(found.shape) == (6, 2, 2, 2)
    for n, c, i, j in np.ndindex(6, 2, 2, 2):
        channel = (c * 2 + i) * 2 + j
        plane, region = IMAGE[int(REGIONS[n, 0]), channel], REGIONS[n, 1:]
        wanted = aligned_bin(plane, region, 0.7, (2, 2), (i, j), ratio, 0.5, -np.inf)
        assert float(found[n, c, i, j]) == pytest.approx(wanted, rel=1e-9, abs=1e-12)
        assert int(channels[n, c, i, j]) == channel


def pixel_bins(region, scale, bins, shape):
    """Yield (i, j, rows, columns) of whole pixels, as Girshick's pooling rounds them."""
    x1, y1, x2, y2 = (math.floor(v * scale + 0.5) for v in region)
    high, wide = max(y2 - y1 + 1, 1) / bins[0], max(x2 - x1 + 1, 1) / bins[1]
    for i, j in np.ndindex(*bins):
        rows = [
            min(max(v + y1, 0), shape[0]) for v in (math.floor(i * high), math.ceil((i + 1) * high))
        ]
        columns = [
            min(max(v + x1, 0), shape[1]) for v in (math.floor(j * wide), math.ceil((j + 1) * wide))
        ]
        yield i, j, slice(*rows), slice(*columns)


def test_roi_pool(ops):
    found, places = ops.roi_pool(tensor(IMAGE), tensor(REGIONS), 0.9, 3, 2)
    for n, region in enumerate(REGIONS):
        for i, j, rows, columns in pixel_bins(region[1:], 0.9, (3, 2), IMAGE.shape[2:]):
            part = IMAGE[int(region[0])][:, rows, columns]
            wanted = part.max((1, 2)) if part.size else np.zeros(8)
            near(found[n, :, i, j], wanted)
            if part.size:
                flat = IMAGE[int(region[0])].reshape(8, -1)
                near(found[n, :, i, j], flat[np.arange(8), places[n, :, i, j].numpy()])


@pytest.mark.parametrize(
    ("groups", "offset_groups", "masked"), [(1, 1, False), (2, 2, True), (1, 2, True)]
)
def test_deform_conv2d(ops, groups, offset_groups, masked):
    rng = np.random.default_rng(groups + offset_groups)
    image, weight = rng.standard_normal((2, 4, 6, 5)), rng.standard_normal((4, 4 // groups, 3, 2))
    bias, taps = rng.standard_normal(4), 6
    # Stride (2, 1), padding (1, 1), dilation (1, 2).
    out = ((6 + 2 - 3) // 2 + 1, 5 + 2 - 2)
    offset = rng.standard_normal((2, 2 * offset_groups * taps, *out))
    mask = (
        rng.random((2, offset_groups * taps, *out))
        if masked
        else np.ones((2, offset_groups * taps, *out))
    )
    given = [tensor(a) for a in (image, weight, offset, mask if masked else np.zeros((2, 1)), bias)]
    found = ops.deform_conv2d(*given, 2, 1, 1, 1, 1, 2, groups, offset_groups, masked)
    assert tuple(found.shape) == (2, 4, *out)

    def point(plane, y, x):
        """Return a bilinear sample with zeros outside."""
        top, left = math.floor(y), math.floor(x)
        total = 0.0
        for row, column in itertools.product((top, top + 1), (left, left + 1)):
            if 0 <= row < plane.shape[0] and 0 <= column < plane.shape[1]:
                total += plane[row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
        return total

    for n, c, oy, ox in np.ndindex(*found.shape):
        total = bias[c]
        for k, (ky, kx) in itertools.product(range(4 // groups), np.ndindex(3, 2)):
            channel = c // (4 // groups) * (4 // groups) + k
            tap = channel // (4 // offset_groups) * taps + ky * 2 + kx
            y = oy * 2 - 1 + ky + offset[n, 2 * tap, oy, ox]
            x = ox - 1 + kx * 2 + offset[n, 2 * tap + 1, oy, ox]
            total += weight[c, k, ky, kx] * mask[n, tap, oy, ox] * point(image[n, channel], y, x)
        assert float(found[n, c, oy, ox]) == pytest.approx(total, rel=1e-9, abs=1e-11)


def test_gradients(ops):
    image = tensor(IMAGE[:, :4, :3, :3]).requires_grad_()
    regions = tensor(np.concatenate([REGIONS[:2, :1], REGIONS[:2, 1:] / 3], 1))
    assert gradcheck(lambda x: ops.roi_align(x, regions, 0.7, 2, 2, 2, True), (image,))
    assert gradcheck(lambda x: ops.roi_pool(x, regions, 0.7, 2, 2)[0], (image,))
    assert gradcheck(lambda x: ops.ps_roi_align(x, regions, 0.7, 2, 2, 2)[0], (image,))
    rng = np.random.default_rng(3)
    shapes = ((1, 2, 3, 3), (2, 2, 2, 2), (1, 8, 2, 2), (1, 4, 2, 2), (2,))
    given = [tensor(rng.standard_normal(s)).requires_grad_() for s in shapes]
    assert gradcheck(lambda *x: ops.deform_conv2d(*x, 1, 1, 0, 0, 1, 1, 1, 1, True), given)


@pytest.mark.parametrize(
    "register",
    [
        lambda name: tp.library.register_autograd(name, lambda ctx, *gradients: gradients),
        lambda name: tp.library.register_autocast(name, "cpu", tp.bfloat16),
        lambda name: tp.library.register_fake(name, lambda *args: args[0]),
        lambda name: tp.library.register_kernel(name, "cpu", lambda *args: args[0]),
        lambda name: tp.library.register_vmap(name, lambda info, dims, *args: (args[0], dims[0])),
        lambda name: tp.library.Library("torchvision", "IMPL").impl(name, lambda *args: args[0], "CPU"),
    ],
)  # fmt: skip
def test_what_the_library_registers_for_its_ops_is_not_needed(ops, register, monkeypatch):
    monkeypatch.setattr(registration, "COMPLETE", {"torchvision"})
    arguments = tensor(REGIONS[:, 1:]), tensor(RNG.random(6)), 0.5
    before = ops.nms(*arguments)
    register("torchvision::nms")
    assert ops.nms(*arguments).tolist() == before.tolist()
