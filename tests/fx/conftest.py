"""Programs are traced by both libraries, where torch is installed."""

import pytest

import tensorplug as tp
import tensorplug.fx

try:
    import torch
    import torch.fx
except ImportError:  # what needs it is skipped
    torch = None

LIBRARIES = [tp] if torch is None else [tp, torch]


@pytest.fixture(params=LIBRARIES, ids=lambda lib: lib.__name__)
def lib(request):
    return request.param
