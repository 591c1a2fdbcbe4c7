"""Communication hooks: other ways of reducing the gradients of DistributedDataParallel."""

from . import default_hooks, powerSGD_hook

__all__ = ["default_hooks", "powerSGD_hook"]
