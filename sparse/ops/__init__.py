"""The ops that sparse tensors are computed by: of dense parts, so that any device serves."""

from . import sparse

FAMILIES = (sparse,)
