"""What a training step asks of a GPU, counted where there is none: launches, bytes, operations.

::

    python -m cuda_on_host.build build/hosted
    HOSTED_FOLDER=build/hosted PYTHONPATH=tools python -m benchmarks.launches

The step runs through the dispatcher, our kernels and CuPy on the host's driver (`tools/cuda_on_host`), which
notes each launch and computes nothing; the host's time is measured besides. Convolutions and attention,
which cuDNN does, count as the launches that it takes: one, and for attention's backward three. The bytes of a
launch are those of the arrays that it is given, each once, so of views the whole memory; what caches keep is
not known. From these figures follows what a step costs at least on a card of a given bandwidth and speed; how
fast one is, only a GPU shows.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .libraries import EXAMPLES

#: An H200's memory and its tensor cores, with and without reduced precision (NVIDIA's data sheet; dense).
BANDWIDTH = 4.3e12
PEAKS = {"bfloat16": 790e12, "float32": 67e12}
MODELS = {"resnet50": 64, "gpt": 8, "mlp": 128}
PRECISIONS = ("float32", "bfloat16")
ATTENTION_BACKWARD = 3  # kernels
SETTLING = 10  # steps
_OPTIONS = ("lr", "momentum", "weight_decay", "nesterov", "betas", "eps")


class Launch(NamedTuple):
    """One launch: the kernel's name, the bytes of its arrays, operations of tensor cores."""

    name: str
    size: int
    flops: float = 0


class Log:
    """What is launched between :meth:`begin` and :meth:`end`."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._driver.hosted_logged.restype = ctypes.c_char_p
        self._products: list[Launch] = []
        self._watch_products()
        self._watch_cudnn()

    def begin(self) -> None:
        """Forget what was noted."""
        self._products.clear()
        self._driver.hosted_log(1)

    def end(self) -> list[Launch]:
        """Return what was noted since."""
        self._driver.hosted_log(0)
        lines = [line.split() for line in self._driver.hosted_logged().decode().splitlines()]
        return [*self._products, *[Launch(name, sum(map(int, sizes))) for name, *sizes in lines]]

    def _note(self, name: str, arrays: Sequence[Any], flops: float) -> None:
        self._products.append(Launch(name, sum(array.nbytes for array in arrays), flops))

    def _watch_products(self) -> None:
        from tensorplug_cuda_cupy.libraries import cublas, cublaslt

        sizes = {0: 4, 1: 8, 2: 2, 4: 8, 5: 16, 14: 2}  # bytes of cudaDataType_t

        def noted(name: str, m: int, n: int, k: int, count: int, kind: int) -> None:
            moved = (m * k + k * n + m * n) * count * sizes[kind]
            self._products.append(Launch(name, moved, 2.0 * m * n * k * count))

        strided, with_bias = cublas.products, cublaslt.product_with_bias

        def products(*arguments: Any) -> None:
            noted("product", *arguments[2:5], arguments[19], arguments[7])
            strided(*arguments)

        def product_with_bias(kind: int, compute: int, turned: Any, shape: Any, *rest: Any) -> bool:
            noted("product_with_bias", *shape, 1, kind)
            return with_bias(kind, compute, turned, shape, *rest)

        cublas.products, cublaslt.product_with_bias = products, product_with_bias

    def _watch_cudnn(self) -> None:
        from tensorplug_cuda_cupy.kernels import convolution
        from tensorplug_cuda_cupy.libraries import cudnn_attention

        def convolve(kind: str, first: Any, second: Any, output: Any, _: Any) -> bool:
            shapes = {
                "conv_fprop": (second, output),
                "conv_dgrad": (second, first),
                "conv_wgrad": (output, second),
            }
            weight, result = shapes[kind]
            positions = result.size // weight.shape[0]
            self._note(kind, (first, second, output), 2.0 * weight.size * positions)
            return True

        def attend(arrays: Sequence[Any], _: Any, is_causal: bool, __: float) -> bool:
            query, key = arrays[:2]
            flops = 4.0 * query.size * key.shape[-2] / (2 if is_causal else 1)
            self._note("attention", arrays, flops)
            return True

        def attend_backward(
            arrays: Sequence[Any], results: Sequence[Any], _: Any, is_causal: bool, __: float
        ) -> bool:
            for part in range(ATTENTION_BACKWARD):
                self._note(f"attention_backward_{part}", arrays[:1], 0)
            query, key = arrays[:2]
            flops = 10.0 * query.size * key.shape[-2] / (2 if is_causal else 1)
            self._products[-1] = Launch(
                "attention_backward", sum(a.nbytes for a in (*arrays, *results)), flops
            )
            return True

        convolution.convolve = convolve
        cudnn_attention.forward, cudnn_attention.backward = attend, attend_backward


def step_of(name: str, batch: int, precision: str, mode: str = "") -> Callable[[], Any]:
    """Return a training step of a network at its published size, with its usual optimizer; or it compiled."""
    import tensorplug as tp

    from . import networks

    if name == "resnet50":
        sys.path.insert(0, str(EXAMPLES / "table1"))
        import resnet50

        def loss_of(model: Any, batch: Any) -> Any:
            return tp.nn.functional.cross_entropy(model(batch[0]), batch[1])

        model = resnet50.ResNet50()
        images = tp.zeros(batch, 3, 224, 224), tp.zeros(batch, dtype=tp.int64)
        sgd = tp.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
        task = networks.Task(model, sgd, iter([images]), loss_of, "image")
    else:
        task = networks.make(name, full=True, batch=batch)
    device = "cuda"
    task.model.to(device)
    given = {key: value for key, value in task.optimizer.defaults.items() if key in _OPTIONS}
    optimizer = type(task.optimizer)(task.model.parameters(), **given)
    inputs = tuple(x.to(device) for x in next(task.batches))

    def forward(*arguments: Any) -> Any:
        with tp.autocast(device, tp.bfloat16, enabled=precision == "bfloat16"):
            return task.model(*arguments)

    model = tp.compile(forward, mode=mode) if mode else task.model

    def step() -> Any:
        optimizer.zero_grad()
        with tp.autocast(device, tp.bfloat16, enabled=precision == "bfloat16" and not mode):
            loss = task.loss(model, inputs)
        loss.backward()
        optimizer.step()
        return loss

    return step


def count(name: str, batch: int, precision: str, log: Log) -> dict[str, Any]:
    """Return the figures of a model's step."""
    import cupy

    pool = cupy.cuda.get_allocator()
    # Each array is an allocation of its own, whose size the driver knows.
    cupy.cuda.set_allocator(None)
    step = step_of(name, batch, precision)
    for _ in range(2):  # optimizers make their state at the first
        step()
    log.begin()
    step()
    launches = log.end()
    cupy.cuda.set_allocator(pool)
    del step
    seconds = min(host_seconds(step_of(name, batch, precision)))
    graphs = min(host_seconds(step_of(name, batch, precision, "reduce-overhead")))
    peak = PEAKS[precision]
    device = sum(max(one.size / BANDWIDTH, one.flops / peak) for one in launches)
    return {
        "model": name,
        "batch": batch,
        "precision": precision,
        "launches": len(launches),
        "gigabytes": sum(one.size for one in launches) / 1e9,
        "teraflops": sum(one.flops for one in launches) / 1e12,
        "device_milliseconds": 1e3 * device,
        "host_milliseconds": 1e3 * seconds,
        "host_microseconds_per_launch": 1e6 * seconds / len(launches),
        "graphs_milliseconds": 1e3 * graphs,
        "kernels": Counter(one.name for one in launches).most_common(),
    }


def host_seconds(step: Callable[[], Any]) -> list[float]:
    """Return the processor time of some steps, after some in which addresses settle."""
    for _ in range(SETTLING):
        step()
    gc.collect()
    seconds = []
    for _ in range(5):
        start = time.process_time()
        step()
        seconds.append(time.process_time() - start)
    return seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.launches", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--model", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument(
        "--kernels", type=int, default=0, metavar="N", help="print the N most frequent kernels"
    )
    parser.add_argument("--out", type=Path, help="a file for the figures, JSON")
    options = parser.parse_args(arguments)
    if "HOSTED_FOLDER" not in os.environ:
        parser.error("HOSTED_FOLDER must name what python -m cuda_on_host.build has built")
    os.environ.update(HOSTED_DRY="1", HOSTED_MEMORY_MB=str(1 << 20))
    import cuda_on_host.plugin  # noqa: F401

    import tensorplug as tp

    tp.cuda.init()
    log, found = Log(), []
    print(
        "| model | batch | precision | launches | GB | TFLOP | device, ms | host, ms | µs per launch "
        "| host in graphs, ms |"
    )
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in options.model:
        for precision in options.precision:
            figures = count(name, MODELS[name], precision, log)
            found.append(figures)
            cells = [name, f"{figures['batch']}", precision, f"{figures['launches']:,}"]
            cells += [
                f"{figures[key]:.2f}" for key in ("gigabytes", "teraflops", "device_milliseconds")
            ]
            cells += [
                f"{figures[f'host_{key}']:.1f}"
                for key in ("milliseconds", "microseconds_per_launch")
            ]
            cells.append(f"{figures['graphs_milliseconds']:.1f}")
            print(f"| {' | '.join(cells)} |", flush=True)
            for kernel, number in figures["kernels"][: options.kernels]:
                print(f"    {number:5} {kernel}")
    if options.out:
        options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
