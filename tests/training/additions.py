"""What random training programs add to a layer: hooks, parametrizations, pruning, frozen parameters."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

Addition = Callable[[Any, Any], None]


def output_hook(lib: Any, layer: Any) -> None:
    """Scale what the layer returns."""
    layer.register_forward_hook(lambda module, given, output: output * 1.5)


def input_hook(lib: Any, layer: Any) -> None:
    """Scale what the layer is given."""
    layer.register_forward_pre_hook(lambda module, given: (given[0] * 0.5,))


def backward_hook(lib: Any, layer: Any) -> None:
    """Scale the gradients of the layer's inputs."""
    layer.register_full_backward_hook(
        lambda module, inner, outer: tuple(None if g is None else g * 2 for g in inner)
    )


def backward_pre_hook(lib: Any, layer: Any) -> None:
    """Scale the gradients of the layer's outputs."""
    layer.register_full_backward_pre_hook(
        lambda module, outer: tuple(None if g is None else g * 0.5 for g in outer)
    )


def gradient_hook(lib: Any, layer: Any) -> None:
    """Scale the gradient of the weight."""
    layer.weight.register_hook(lambda gradient: gradient * 0.5)


def accumulation_hook(lib: Any, layer: Any) -> None:
    """Scale what has been accumulated."""

    def scale(parameter: Any) -> None:
        parameter.grad.mul_(0.9)

    layer.weight.register_post_accumulate_grad_hook(scale)


def weight_norm(lib: Any, layer: Any) -> None:
    """Let direction and length of the weight be two parameters."""
    lib.nn.utils.parametrizations.weight_norm(layer)


def spectral_norm(lib: Any, layer: Any) -> None:
    """Divide the weight by its largest singular value, which is estimated in buffers."""
    lib.nn.utils.parametrizations.spectral_norm(layer)


def orthogonal(lib: Any, layer: Any) -> None:
    """Keep the rows or columns of the weight orthogonal."""
    lib.nn.utils.parametrizations.orthogonal(layer, orthogonal_map="cayley")


def pruned(lib: Any, layer: Any) -> None:
    """Mask the smallest weights."""
    lib.nn.utils.prune.l1_unstructured(layer, "weight", 0.4)


def frozen(lib: Any, layer: Any) -> None:
    """Have the layer get no gradients."""
    layer.requires_grad_(False)


ADDITIONS: dict[str, Addition] = {
    function.__name__: function
    for function in (
        output_hook, input_hook, backward_hook, backward_pre_hook, gradient_hook, accumulation_hook,
        weight_norm, spectral_norm, orthogonal, pruned, frozen,
    )
}  # fmt: skip
#: Gradients that are not those of the loss.
SCALING = ("backward_hook", "backward_pre_hook", "gradient_hook", "accumulation_hook")
#: Weights that are computed from others.
PARAMETRIZED = ("weight_norm", "spectral_norm", "orthogonal", "pruned")


def add(lib: Any, network: Any, name: str, draw: Random) -> None:
    """Add to one of the layers with a weight."""
    kinds = ("Linear", "Conv2d", "Conv1d")
    layers = [layer for layer in network.modules() if type(layer).__name__ in kinds]
    if name == "orthogonal":  # others than square ones are completed by random directions
        layers = [layer for layer in layers if layer.weight.shape == (layer.weight.shape[0],) * 2]
    if layers:
        ADDITIONS[name](lib, draw.choice(layers))
