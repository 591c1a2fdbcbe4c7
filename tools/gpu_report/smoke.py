"""What a GPU has to do first: a function each, in the order in which they build on each other."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from types import ModuleType

import numpy as np

CHECKS: list[Callable[[], str | None]] = []
check = CHECKS.append


def device() -> str:
    """Return what the device is."""
    import tensorplug as tp

    assert tp.cuda.is_available(), "tp.cuda.is_available() is False"
    major, minor = tp.cuda.get_device_capability()
    free, total = tp.cuda.mem_get_info()
    memory = [f"{size / 2**30:.0f}" for size in (free, total)]
    return f"{tp.cuda.get_device_name()}, sm_{major}{minor}, {' of '.join(memory)} GiB free"


def doctor() -> None:
    """Let the library look at its own installation, and print what it finds."""
    from tensorplug import cli

    assert not cli.main(["doctor"]), "tensorplug doctor found something missing or broken"


def copies() -> None:
    """Copy to the device and back, in each kind of element."""
    import tensorplug as tp

    for dtype in (tp.float32, tp.float64, tp.float16, tp.bfloat16, tp.int64, tp.bool, tp.complex64):
        x = tp.arange(6).reshape(2, 3).to(dtype)
        there = x.to("cuda")
        assert there.device.type == "cuda"
        assert tp.equal(there.T.cpu(), x.T), dtype


def kernels() -> None:
    """Run an elementwise op, a reduction and one of our own kernels."""
    import tensorplug as tp

    x = tp.randn(1000, 257, dtype=tp.float64)
    for function in (tp.exp, lambda t: t.sum(1), lambda t: t.softmax(1), lambda t: t.sort(1)[0]):
        tp.testing.assert_close(function(x.cuda()).cpu(), function(x), rtol=1e-12, atol=1e-12)


def products() -> None:
    """Multiply matrices in each precision."""
    import tensorplug as tp

    x, y = (np.random.default_rng(seed).standard_normal((256, 256)) for seed in (0, 1))
    for dtype, tolerance in (
        (tp.float64, 1e-12),
        (tp.float32, 1e-4),
        (tp.bfloat16, 3e-1),
        (tp.float16, 5e-2),
    ):
        there = tp.tensor(x, dtype=dtype, device="cuda") @ tp.tensor(y, dtype=dtype, device="cuda")
        error = np.abs(there.double().cpu().numpy() - x @ y).max()
        assert error < tolerance, f"{dtype}: off by {error:.2g}"


def convolutions() -> None:
    """Convolve forward and backward, and compare with the CPU."""
    import tensorplug as tp

    found = []
    for where in ("cpu", "cuda"):
        tp.manual_seed(0)
        layer = tp.nn.Conv2d(3, 8, 3, padding=1, stride=2).to(where)
        x = tp.linspace(-1, 1, 2 * 3 * 16 * 16).reshape(2, 3, 16, 16).to(where).requires_grad_()
        layer.load_state_dict(
            {"weight": tp.linspace(-1, 1, 216).reshape(8, 3, 3, 3), "bias": tp.arange(8.0)}
        )
        layer(x).square().sum().backward()
        found.append((x.grad.cpu(), layer.weight.grad.cpu()))
    for there, here in zip(found[1], found[0], strict=True):
        tp.testing.assert_close(there, here, rtol=1e-3, atol=1e-3)


def attention() -> None:
    """Attend in bfloat16, forward and backward."""
    import tensorplug as tp

    x = tp.randn(2, 4, 64, 64, device="cuda", dtype=tp.bfloat16, requires_grad=True)
    tp.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True).float().sum().backward()
    assert x.grad.isfinite().all()


def graphs() -> None:
    """Train compiled in CUDA graphs, and compare with the same without."""
    import tensorplug as tp

    found = []
    for mode in ("default", "reduce-overhead"):
        tp.manual_seed(0)
        layers = tp.nn.Linear(64, 128), tp.nn.GELU(), tp.nn.LayerNorm(128), tp.nn.Linear(128, 8)
        model = tp.nn.Sequential(*layers).to("cuda")
        compiled = tp.compile(model, mode=mode)
        optimizer = tp.optim.AdamW(model.parameters(), lr=1e-3)
        for _ in range(12):
            optimizer.zero_grad()
            loss = compiled(tp.randn(32, 64, device="cuda")).square().mean()
            loss.backward()
            optimizer.step()
        found.append([loss.detach().cpu(), *[p.detach().cpu() for p in model.parameters()]])
    for one, other in zip(*found, strict=True):
        tp.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert not tp.plugins.quarantined_fusers(), tp.plugins.quarantined_fusers()


def digits() -> str:
    """Train the network of digits to 97 %."""
    sys.path.insert(0, os.path.join("examples", "digits"))  # noqa: PTH118
    # Progress and pictures, which are not asked for here and may not be installed there.
    absent = {"tqdm": ("tqdm", "tqdm"), "matplotlib": ("picture", "draw")}
    for package, (module, name) in absent.items():
        if importlib.util.find_spec(package) is None:
            stand_in = ModuleType(module)
            setattr(stand_in, name, lambda steps, **_: steps)
            sys.modules[module] = stand_in
    import train

    _, _, accuracies = train.train(train.load_digits("cuda"), 20, seed=0, progress=False)
    assert accuracies[-1] >= 0.97, f"{accuracies[-1]:.2%} after {len(accuracies)} epochs"
    return f"{accuracies[-1]:.2%} after {len(accuracies)} epochs"


for function in (
    device, doctor, copies, kernels, products, convolutions, attention, graphs, digits,
):  # fmt: skip
    check(function)


def main() -> int:
    """Run all checks, print a line of JSON for each, and return 1 if one failed."""
    if "HOSTED_FOLDER" in os.environ:
        import cuda_on_host.plugin  # noqa: F401
    failed = 0
    for function in CHECKS:
        start = time.perf_counter()
        line: dict[str, object] = {"check": function.__name__, "passed": True}
        try:
            line["says"] = function() or ""
        except Exception as error:
            failed += 1
            traceback.print_exc()
            line.update(passed=False, says=f"{type(error).__name__}: {error}")
        line["seconds"] = round(time.perf_counter() - start, 2)
        print(json.dumps(line), flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
