"""ResNet-50, as in "Deep residual learning for image recognition".

Kaiming He, Xiangyu Zhang, Shaoqing Ren and Jian Sun, 2015, https://arxiv.org/abs/1512.03385, with the step
of a bottleneck in its 3×3 convolution (often called v1.5), as torchvision has it, whose names of the
weights are used too.
"""

import tensorplug as tp
from tensorplug import nn

BLOCKS = (3, 4, 6, 3)
EXPANSION = 4


class Bottleneck(nn.Module):
    """Convolutions of 1×1, 3×3 and 1×1, around which the input is added.

    Parameters
    ----------
    before, channels : int
        The channels of the input, and those of the 3×3 convolution; the output has four times as many.
    stride : int
        The step of the 3×3 convolution.
    """

    def __init__(self, before: int, channels: int, stride: int = 1) -> None:
        super().__init__()
        after = channels * EXPANSION
        self.conv1 = nn.Conv2d(before, channels, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, after, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(after)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or before != after:
            self.downsample = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, x: tp.Tensor) -> tp.Tensor:
        """Return the block's output."""
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        x = self.bn3(self.conv3(x))
        x += shortcut
        return self.relu(x)


class ResNet50(nn.Module):
    """Sixteen bottlenecks in four stages: 25,557,032 weights.

    Parameters
    ----------
    classes : int
        How many scores each image gets.
    width : float
        Multiplies all channels; 1 is the published network.
    """

    def __init__(self, classes: int = 1000, width: float = 1.0) -> None:
        super().__init__()
        before = first = int(64 * width)
        self.conv1 = nn.Conv2d(3, first, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(first)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        for stage, blocks in enumerate(BLOCKS):
            channels = first * 2**stage
            layer = nn.Sequential()
            for block in range(blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                layer.append(Bottleneck(before, channels, stride))
                before = channels * EXPANSION
            setattr(self, f"layer{stage + 1}", layer)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(before, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: tp.Tensor) -> tp.Tensor:
        """Return the scores ``(N, classes)`` of images ``(N, 3, H, W)``, of 32 pixels or more."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))
