"""VGG-19, as in "Very deep convolutional networks for large-scale image recognition".

Karen Simonyan and Andrew Zisserman, 2014, https://arxiv.org/abs/1409.1556, configuration E. The names of
the weights are torchvision's.
"""

import tensorplug as tp
from tensorplug import nn

STAGES = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))  # channels, convolutions; then pooling


class VGG19(nn.Module):
    """Sixteen 3×3 convolutions and three linear layers: 143,667,240 weights.

    Parameters
    ----------
    classes : int
        How many scores each image gets.
    width : float
        Multiplies all channels; 1 is the published network.
    dropout : float
        The share of features that training drops after the first two linear layers.
    """

    def __init__(self, classes: int = 1000, width: float = 1.0, dropout: float = 0.5) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        for channels, convolutions in STAGES:
            after = int(channels * width)
            for _ in range(convolutions):
                layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(inplace=True)]
                before = after
            layers.append(nn.MaxPool2d(2))
        hidden = int(4096 * width)
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(before * 7 * 7, hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(hidden, classes),
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.01)
                nn.init.zeros_(module.bias)

    def forward(self, images: tp.Tensor) -> tp.Tensor:
        """Return the scores ``(N, classes)`` of images ``(N, 3, H, W)``, of 32 pixels or more."""
        return self.classifier(self.avgpool(self.features(images)).flatten(1))
