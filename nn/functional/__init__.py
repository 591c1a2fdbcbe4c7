"""The functions behind the modules, as ``torch.nn.functional``."""

from __future__ import annotations

from .activation import *
from .adaptive_pooling import *
from .attention import *
from .classification_loss import *
from .convolution import *
from .ctc import *
from .dropout import *
from .embedding_bag import *
from .fractional_pooling import *
from .linear import *
from .loss import *
from .margin_loss import *
from .multi_head import *
from .normalization import *
from .padding import *
from .pooling import *
from .softmaxes import *
from .upsampling import *
from .vision import *
