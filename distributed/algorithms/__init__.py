"""What training in several processes is made of beside collectives (``torch.distributed.algorithms``)."""

from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
