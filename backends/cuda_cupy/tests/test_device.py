"""What the conformance suite does not ask of a CUDA device; and the suite itself. Skipped without one."""

import subprocess
import sys

import pytest
from on_device import FLOATS, HOSTED, REASON, agree, needs_device, randoms

import tensorplug as tp
from tensorplug_cuda_cupy import plugin, tables

pytestmark = needs_device


def test_presence():
    assert tp.cuda.is_available()
    assert tp.cuda.device_count() >= 1
    assert tp.cuda.get_device_name() == tp.cuda.get_device_properties(0).name
    assert tp.cuda.get_device_capability()[0] >= 5
    assert tp.cuda.is_bf16_supported()
    assert tp.cuda.is_tf32_supported() == (tp.cuda.get_device_capability()[0] >= 8)


@pytest.mark.skipif(HOSTED, reason="make test-cuda-hosted runs it whole")
def test_conformance():
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "--pyargs",
        "tensorplug.testing.conformance",
    ]
    done = subprocess.run(
        [*command, "--device", "cuda", "--every", "20"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:]


def test_training_follows_the_cpu():
    losses = {}
    for device in ("cpu", "cuda"):
        tp.manual_seed(0)
        model = tp.nn.Sequential(
            tp.nn.Conv2d(1, 4, 3), tp.nn.BatchNorm2d(4), tp.nn.GELU(), tp.nn.MaxPool2d(2), tp.nn.Flatten(),
            tp.nn.Linear(36, 10),
        )  # fmt: skip
        x, target = tp.randn(8, 1, 8, 8), tp.randint(0, 10, (8,))
        model.to(device)
        optimizer = tp.optim.AdamW(model.parameters(), lr=1e-2)
        losses[device] = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = tp.nn.functional.cross_entropy(model(x.to(device)), target.to(device))
            loss.backward()
            optimizer.step()
            losses[device].append(loss.item())
    assert losses["cuda"] == pytest.approx(losses["cpu"], rel=1e-3)


def test_each_primitive_has_a_kernel():
    from tensorplug.core.dispatch import op_registry

    kernels = tables.core_kernels(plugin.runtime)
    ours = {
        op.name
        for op in op_registry.all_ops()
        if op.kind == "primitive" and op.owner == "tensorplug"
    }
    names = {kernel.op for kernel in kernels}
    assert ours <= names <= {op.name for op in op_registry.all_ops()}
    assert all(kernel.priority == 0 and kernel.device == "cuda" for kernel in kernels)


def channels_last(x):
    return x.movedim(1, -1).contiguous().movedim(-1, 1)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("layout", [tp.Tensor.contiguous, channels_last])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "dilation", "groups"),
    [
        ((9,), (3,), (2,), (1,), (2,), 1),
        ((15, 14), (3, 2), (1, 2), (1, 0), (1, 1), 2),
        ((5, 6), (1, 1), (1, 1), (0, 0), (1, 1), 1),
        ((4, 5, 4), (2, 2, 3), (1, 1, 1), (0, 1, 1), (1, 2, 1), 4),
    ],
)
def test_convolution(dtype, layout, size, kernel, stride, padding, dilation, groups):
    ops, options = tp.ops, (stride, padding, dilation, groups)
    shape = (8, 4 // groups, *kernel)

    def all_three(x, weight, bias, g):
        y = ops.convolution(x, weight, bias, *options)
        assert (
            layout is tp.Tensor.contiguous
            or x.device.type == "cpu"
            or y.movedim(1, -1).is_contiguous()
        )
        back = ops.convolution_input(g, weight, size, *options)
        return y, back, ops.convolution_weight(x, g, kernel, *options)

    x, weight, bias = randoms(2, 4, *size), randoms(*shape, seed=1), randoms(8, seed=2)
    g = randoms(*ops.convolution(x, weight, None, *options).shape, seed=3)

    def laid_out(t):
        return layout(t) if t.ndim > 2 else t

    agree(
        all_three, (x, weight, bias, g), dtype, laid_out, times=100 if dtype == tp.float32 else 10
    )


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("batch", [(), (2,), (2, 4), (1, 2, 2)])
@pytest.mark.parametrize("mask", ["none", "causal", "allowed", "added"])
def test_attention(dtype, batch, mask):
    q, k, v = (tp.randn(*batch, n, 64).to(dtype) for n in (128, 192, 192))
    options = {"is_causal": mask == "causal"}
    if mask == "allowed":
        options["attn_mask"] = tp.rand(128, 192) > 0.3
        options["attn_mask"][5] = False
    elif mask == "added":
        options["attn_mask"] = tp.randn(*batch[:1], *(1,) * len(batch[1:]), 128, 192).to(dtype)
        options["attn_mask"][..., 3, :] = float("-inf")
    results = []
    for device in ("cpu", "cuda"):
        inputs = [t.to(device).detach().requires_grad_() for t in (q, k, v)]
        given = {n: o.to(device) if isinstance(o, tp.Tensor) else o for n, o in options.items()}
        y = tp.nn.functional.scaled_dot_product_attention(*inputs, **given)
        y.float().square().sum().backward()
        results.append([y.detach().cpu(), *[t.grad.cpu() for t in inputs]])
    for one, other in zip(*results, strict=True):
        tp.testing.assert_close(one, other, rtol=2e-2, atol=2e-2, equal_nan=True)


@pytest.mark.skipif(
    REASON is not None or tp.cuda.device_count() < 2, reason="there is one GPU, or none"
)
def test_two_devices():
    x = tp.arange(10.0, device="cuda:0")
    y = x.to("cuda:1") * 2
    assert y.device.index == 1
    assert y.to("cuda:0").device.index == 0
    assert y.cpu().tolist() == (tp.arange(10.0) * 2).tolist()
    with tp.cuda.device(1):
        assert tp.zeros(1, device="cuda").device.index == 1
    there = x.to("cuda:1")
    x.fill_(7)  # after the copy, which the other device's stream makes
    tp.cuda.synchronize(0)
    assert there.tolist() == tp.arange(10.0).tolist()
