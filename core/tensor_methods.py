"""The ops that are Tensor methods, for type checkers and editors; at run time the declarations add them."""

from __future__ import annotations

from .tensor_base import TensorBase


class TensorMethods(TensorBase):
    """Base of Tensor that names the methods which op declarations supply."""

    __slots__ = ()
