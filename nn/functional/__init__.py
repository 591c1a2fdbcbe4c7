"""The functions behind the modules, as ``torch.nn.functional``."""

from __future__ import annotations

from .activation import *
from .attention import *
from .convolution import *
from .dropout import *
from .embedding import *
from .linear import *
from .losses import *
from .normalization import *
from .padding import *
from .pooling import *
from .softmax import *
from .upsampling import *
from .vision import *
