"""Layers of random networks for images: functions of the library, a source of choices and the channels.

Each returns the module and how many channels come out of it.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from building_blocks import (
    activation,
    around,
    channels_last,
    every_second_in_place,
    gated,
    halves_written,
    residual,
)

IMAGE_LAYERS: dict[str, Callable[[Any, Random, int], tuple[Any, int]]] = {}


def layer(function: Any) -> Any:
    """Make a layer known by its function's name."""
    IMAGE_LAYERS[function.__name__] = function
    return function


@layer
def convolution(lib: Any, draw: Random, channels: int) -> tuple[Any, int]:
    """Return a convolution of any options."""
    out, dilation = draw.choice([2, 4, 6]), draw.choice([1, 1, 2])
    module = lib.nn.Conv2d(
        channels,
        out,
        draw.choice([1, 2, 3]),
        padding=draw.choice([1, "same"]) if dilation == 1 else dilation,
        groups=draw.choice([1, 2]),
        dilation=dilation,
        bias=draw.random() < 0.7,
        padding_mode=draw.choice(["zeros", "zeros", "reflect", "circular", "replicate"]),
    )
    return module, out


@layer
def transposed_convolution(lib: Any, draw: Random, channels: int) -> tuple[Any, int]:
    """Return the transpose of a convolution."""
    stride = draw.choice([1, 2])
    return lib.nn.ConvTranspose2d(
        channels, 4, 3, stride=stride, padding=1, output_padding=stride - 1, groups=draw.choice([1, 2])
    ), 4  # fmt: skip


@layer
def depthwise(lib: Any, draw: Random, channels: int) -> tuple[Any, int]:
    """Return a convolution of each channel by itself."""
    return lib.nn.Conv2d(channels, 2 * channels, 3, padding=1, groups=channels), 2 * channels


@layer
def batch_norm(lib: Any, draw: Random, channels: int) -> tuple[Any, int]:
    """Return batch norm; without running statistics it looks at the batch in evaluation, too."""
    return lib.nn.BatchNorm2d(
        channels,
        momentum=draw.choice([0.1, None]),
        affine=draw.random() < 0.7,
        track_running_stats=draw.random() < 0.7,
    ), channels


@layer
def group_norm(lib: Any, draw: Random, channels: int) -> tuple[Any, int]:
    """Return group norm."""
    return lib.nn.GroupNorm(2, channels, affine=draw.random() < 0.7), channels


@layer
def instance_norm(lib: Any, draw: Random, channels: int) -> tuple[Any, int]:
    """Return instance norm; with running statistics these follow the batch."""
    options = {name: draw.random() < 0.5 for name in ("affine", "track_running_stats")}
    return lib.nn.InstanceNorm2d(channels, **options), channels


@layer
def layer_norm(lib: Any, draw: Random, channels: int) -> tuple[Any, int]:
    """Return layer norm over the channels."""
    return around(lib)(channels_last, lib.nn.LayerNorm(channels)), channels


@layer
def response_norm(lib: Any, draw: Random, channels: int) -> tuple[Any, int]:
    """Return local response norm."""
    return lib.nn.LocalResponseNorm(2), channels


@layer
def pointwise(lib: Any, draw: Random, channels: int) -> tuple[Any, int]:
    """Return an activation."""
    return activation(lib, draw), channels


@layer
def pooling(lib: Any, draw: Random, channels: int) -> tuple[Any, int]:
    """Return a pooling."""
    name, options = draw.choice(
        [
            ("MaxPool2d", {"kernel_size": 2, "ceil_mode": True}),
            (
                "AvgPool2d",
                {"kernel_size": 2, "stride": 1, "padding": 1, "count_include_pad": False},
            ),
            ("AdaptiveAvgPool2d", {"output_size": 5}),
            ("AdaptiveMaxPool2d", {"output_size": 4}),
        ]
    )
    return getattr(lib.nn, name)(**options), channels


@layer
def resizing(lib: Any, draw: Random, channels: int) -> tuple[Any, int]:
    """Return an interpolation to a fixed size."""
    mode = draw.choice(["nearest", "bilinear", "bicubic", "nearest-exact"])
    return lib.nn.Upsample(size=(draw.choice([5, 7]), 6), mode=mode), channels


@layer
def padding(lib: Any, draw: Random, channels: int) -> tuple[Any, int]:
    """Return paddings, one of which crops."""
    nn = lib.nn
    return nn.Sequential(nn.ReflectionPad2d(1), nn.ZeroPad2d((0, 1, -1, 0))), channels


@layer
def shuffle(lib: Any, draw: Random, channels: int) -> tuple[Any, int]:
    """Return what brings channels into the plane and back."""
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(channels, 4 * channels, 1), nn.PixelShuffle(2), nn.PixelUnshuffle(2),
        nn.ChannelShuffle(2), nn.Conv2d(4 * channels, channels, 1),
    ), channels  # fmt: skip


@layer
def block(lib: Any, draw: Random, channels: int) -> tuple[Any, int]:
    """Return two convolutions, joined to their input in one of several ways."""
    nn = lib.nn
    inner = nn.Sequential(
        nn.Conv2d(channels, channels, 3, padding=1), activation(lib, draw), nn.Conv2d(channels, channels, 1)
    )  # fmt: skip
    how = draw.choice([residual, halves_written, every_second_in_place])
    return around(lib)(how, inner), channels


@layer
def squeeze_and_excitation(lib: Any, draw: Random, channels: int) -> tuple[Any, int]:
    """Return a gate for each channel."""
    nn = lib.nn
    gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, channels, 1), nn.Sigmoid())
    return around(lib)(gated, gate), channels


@layer
def dropout(lib: Any, draw: Random, channels: int) -> tuple[Any, int]:
    """Return dropout of elements or of channels."""
    return draw.choice([lib.nn.Dropout, lib.nn.Dropout2d])(0.3), channels
