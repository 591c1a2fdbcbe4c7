"""The steps of optimizers. What they write is queued: a step of training is one graph, evaluated here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.plugin import ArrayApiBackend

from .. import _mlx
from .._mlx import mx
from ..dtypes import FLOATS
from .fusing import fused


@fused
def _adam(
    p: Any, g: Any, m: Any, v: Any, rate: Any, root: Any, beta1: Any, beta2: Any, eps: Any
) -> tuple[Any, Any, Any]:
    m = m + (1 - beta1) * (g - m)
    v = beta2 * v + (1 - beta2) * (g * g)
    return p - rate * (m / (mx.sqrt(v) / root + eps)), m, v


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin; those of halves compute in float32 and round what they write."""
    runtime = plugin.runtime

    def wide(array: Any) -> Any:
        return runtime.read(array).astype(mx.float32)

    def write(targets: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        made = []
        for target, result in zip(targets, results, strict=True):
            runtime.write(target, result.astype(runtime.natives[target.dtype]))
            made.append(target.store.array)
        return made

    def gradient(p: Any, grad: Any, weight_decay: float, maximize: bool) -> Any:
        g = wide(grad)
        if maximize:
            g = -g
        return g + weight_decay * p if weight_decay else g

    @plugin.kernel("optim.sgd_step", dtypes=FLOATS, writes=True)
    def sgd_step(
        params: list[Any],
        grads: list[Any],
        momentum_buffers: list[Any],
        lr: float,
        momentum: float,
        dampening: float,
        weight_decay: float,
        nesterov: bool,
        maximize: bool,
        first: bool,
    ) -> None:
        written: list[Any] = []
        for i, param in enumerate(params):
            p = wide(param)
            g = gradient(p, grads[i], weight_decay, maximize)
            if momentum_buffers:
                buffer = g if first else momentum * wide(momentum_buffers[i]) + (1 - dampening) * g
                written += write([momentum_buffers[i]], [buffer])
                g = g + momentum * buffer if nesterov else buffer
            written += write([param], [p - lr * g])
        _mlx.begin(written)

    @plugin.kernel("optim.adam_step", dtypes=FLOATS, writes=True)
    def adam_step(
        params: list[Any],
        grads: list[Any],
        exp_avgs: list[Any],
        exp_avg_sqs: list[Any],
        max_exp_avg_sqs: list[Any],
        steps: list[float],
        lr: float,
        beta1: float,
        beta2: float,
        weight_decay: float,
        eps: float,
        amsgrad: bool,
        maximize: bool,
        decoupled: bool,
    ) -> None:
        written: list[Any] = []
        betas = [mx.array(number) for number in (beta1, beta2, eps)]
        for i, param in enumerate(params):
            p = wide(param)
            g = gradient(p, grads[i], 0.0 if decoupled else weight_decay, maximize)
            if decoupled and weight_decay:
                p = p * (1 - lr * weight_decay)
            rate = mx.array(lr / (1 - beta1 ** steps[i]))
            root = mx.array((1 - beta2 ** steps[i]) ** 0.5)
            m, v = wide(exp_avgs[i]), wide(exp_avg_sqs[i])
            stepped, m, v = _adam(p, g, m, v, rate, root, *betas)
            if amsgrad:
                most = mx.maximum(wide(max_exp_avg_sqs[i]), v)
                stepped = p - rate * (m / (mx.sqrt(most) / root + eps))
                written += write([max_exp_avg_sqs[i]], [most])
            written += write([param, exp_avgs[i], exp_avg_sqs[i]], [stepped, m, v])
        _mlx.begin(written)
