"""AlexNet, as in "One weird trick for parallelizing convolutional neural networks".

Alex Krizhevsky, 2014, https://arxiv.org/abs/1404.5997: the network of 2012 for one device, without its
local response normalisation. The names of the weights are torchvision's.
"""

import tensorplug as tp
from tensorplug import nn


class AlexNet(nn.Module):
    """Five convolutions and three linear layers: 61,100,840 weights.

    Parameters
    ----------
    classes : int
        How many scores each image gets.
    width : float
        Multiplies all channels; 1 is the published network.
    dropout : float
        The share of features that training drops before the first two linear layers.
    """

    def __init__(self, classes: int = 1000, width: float = 1.0, dropout: float = 0.5) -> None:
        super().__init__()
        a, b, c, d, hidden = (int(n * width) for n in (64, 192, 384, 256, 4096))
        self.features = nn.Sequential(
            nn.Conv2d(3, a, kernel_size=11, stride=4, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
            nn.Conv2d(a, b, kernel_size=5, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
            nn.Conv2d(b, c, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(c, d, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(d, d, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
        )
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(d * 6 * 6, hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, classes),
        )

    def forward(self, images: tp.Tensor) -> tp.Tensor:
        """Return the scores ``(N, classes)`` of images ``(N, 3, H, W)``, of 63 pixels or more."""
        return self.classifier(self.avgpool(self.features(images)).flatten(1))
