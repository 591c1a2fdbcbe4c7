"""The network."""

import tensorplug as tp
from tensorplug import nn


class DigitNet(nn.Module):
    """Two 3×3 convolutions, one pooling, one linear layer: 10,026 weights.

    Parameters
    ----------
    dropout : float
        The share of features that training drops before the linear layer.
    """

    def __init__(self, dropout: float = 0.3) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, kernel_size=3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Dropout(dropout),
            nn.Linear(32 * 4 * 4, 10),
        )

    def forward(self, images: tp.Tensor) -> tp.Tensor:
        """Return the scores of the ten digits, ``(N, 10)``, for images ``(N, 1, 8, 8)``."""
        return self.classifier(self.features(images))
