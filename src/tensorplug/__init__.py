"""tensorplug: tensors and deep learning in which every device, kernel, op and derivative is a plugin."""

from __future__ import annotations

import tensorplug.autograd as autograd
from tensorplug.core import Tensor

__version__ = "0.1.0.dev0"
