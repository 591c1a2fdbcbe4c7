"""What training in several processes is made of beside collectives (``torch.distributed.algorithms``)."""

from . import ddp_comm_hooks as ddp_comm_hooks
from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
