"""In which dtypes a divided module computes and communicates, and where its parameters are kept."""

from __future__ import annotations

from dataclasses import dataclass

from tensorplug.core import DType

__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """In which dtypes a module computes and communicates; None leaves it at that of its parameters.

    Parameters
    ----------
    param_dtype : DType, optional
        Of the parameters in forward and backward, and while they are gathered. Each process keeps its part,
        and the optimizer's state, in the dtype that they have.
    reduce_dtype : DType, optional
        Of gradients while they are summed; by default `param_dtype`.
    output_dtype : DType, optional
        Of what forward returns.
    cast_forward_inputs : bool
        Convert what forward is given to `param_dtype`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> MixedPrecisionPolicy(param_dtype=tp.bfloat16, reduce_dtype=tp.float32).output_dtype
    """

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    output_dtype: DType | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Leaves parameters where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Keeps the parts of parameters on the CPU; of modules there it changes nothing.

    Parameters
    ----------
    pin_memory : bool
        Whether in memory that is locked.
    """

    pin_memory: bool = True
