"""MobileNet, the second version: "MobileNetV2: Inverted residuals and linear bottlenecks".

Mark Sandler, Andrew Howard, Menglong Zhu, Andrey Zhmoginov and Liang-Chieh Chen, 2018,
https://arxiv.org/abs/1801.04381. The paper on PyTorch says only "MobileNet"; this is the version whose
weights torchvision published at that time, and the names of the weights are torchvision's.
"""

import tensorplug as tp
from tensorplug import nn

# How often the input's channels, the channels of the output, blocks, the first block's step.
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def scaled(channels: float) -> int:
    """Return the multiple of 8 next to `channels`, but none that is more than a tenth below it."""
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * channels else nearest


def convolution(before: int, after: int, size: int, stride: int = 1, groups: int = 1) -> nn.Module:
    """Return a convolution with batch normalisation and ReLU6."""
    return nn.Sequential(
        nn.Conv2d(before, after, size, stride, (size - 1) // 2, groups=groups, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU6(inplace=True),
    )


class InvertedResidual(nn.Module):
    """Widen by 1×1, convolve each channel by itself, narrow by 1×1 without activation.

    Parameters
    ----------
    before, after : int
        The channels of the input and of the output.
    expansion : int
        How many times the input's channels there are in between.
    stride : int
        The step of the convolution of each channel.
    """

    def __init__(self, before: int, after: int, expansion: int, stride: int) -> None:
        super().__init__()
        hidden = before * expansion
        widen = [convolution(before, hidden, 1)] if expansion != 1 else []
        self.conv = nn.Sequential(
            *widen,
            convolution(hidden, hidden, 3, stride, groups=hidden),
            nn.Conv2d(hidden, after, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.shortcut = stride == 1 and before == after

    def forward(self, x: tp.Tensor) -> tp.Tensor:
        """Return the block's output."""
        return x + self.conv(x) if self.shortcut else self.conv(x)


class MobileNetV2(nn.Module):
    """Seventeen inverted residuals: 3,504,872 weights.

    Parameters
    ----------
    classes : int
        How many scores each image gets.
    width : float
        Multiplies all channels; 1 is the published network.
    dropout : float
        The share of features that training drops before the linear layer.
    """

    def __init__(self, classes: int = 1000, width: float = 1.0, dropout: float = 0.2) -> None:
        super().__init__()
        before = scaled(32 * width)
        layers = [convolution(3, before, 3, stride=2)]
        for expansion, channels, blocks, stride in STAGES:
            for block in range(blocks):
                after = scaled(channels * width)
                step = stride if block == 0 else 1
                layers.append(InvertedResidual(before, after, expansion, step))
                before = after
        last = scaled(1280 * max(1.0, width))
        self.features = nn.Sequential(*layers, convolution(before, last, 1))
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(last, classes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.01)
                nn.init.zeros_(module.bias)

    def forward(self, images: tp.Tensor) -> tp.Tensor:
        """Return the scores ``(N, classes)`` of images ``(N, 3, H, W)``, of 32 pixels or more."""
        return self.classifier(self.features(images).mean((2, 3)))
