"""Conversions between the layouts of tensors, and what files hold of sparse ones."""

from __future__ import annotations

from typing import Any

from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.layout import layout, strided

from .compressed import CompressedTensor
from .compressed_creation import sparse_compressed_tensor
from .coordinates import CooTensor
from .creation import sparse_coo_tensor
from .layouts import COMPRESSED, sparse_coo, title
from .structure import compressed_of_coo, coo_of_compressed, coo_of_dense
from .tensors import SparseTensor


def to_layout(
    tensor: Any,
    wanted: Any,
    name: str,
    sparse_dim: int | None = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Any:
    """Return a tensor in a layout.

    Parameters
    ----------
    tensor : Tensor
        Dense or sparse.
    wanted : layout
        The layout.
    name : str
        Of the method that was called.
    sparse_dim : int, optional
        Of COO, how many dimensions coordinates are stored of; by default all that `dense_dim` leaves.
    blocksize : tuple of int, optional
        Of BSR and BSC, rows and columns of a block.
    dense_dim : int, optional
        How many of the last dimensions of a dense tensor are stored whole.
    """
    if wanted is strided:
        return tensor.to_dense()
    if wanted is not sparse_coo and wanted not in COMPRESSED:
        raise NotImplementedError(f"{name}(): there are no tensors of layout {wanted}")
    conversion = _Conversion(tensor, wanted, name)
    blocked = getattr(wanted, "blocked", False)
    if isinstance(tensor, CompressedTensor) and tensor._batch and blocked > tensor._layout.blocked:
        raise conversion.refused(None, "for batched inputs ")
    if isinstance(tensor, CooTensor) and wanted is not sparse_coo and tensor.sparse_dim() != 2:
        raise conversion.refused(
            None, "for input tensors with sparse_dim()!=2 ", conversion.to_kind
        )
    block = conversion.checked_blocksize(blocksize)
    if isinstance(tensor, CompressedTensor):
        return _of_compressed(tensor, wanted, conversion, sparse_dim, block, dense_dim)
    if isinstance(tensor, CooTensor):
        conversion.refuse_dense_dim(dense_dim)
        if wanted is sparse_coo:
            if sparse_dim not in (None, tensor.sparse_dim()):
                raise conversion.refused("sparse_dim argument !=self.sparse_dim()")
            return tensor
        conversion.check_divisible(tensor._shape[:2], block)
        return compressed_of_coo(tensor, wanted, block)
    return _of_dense(tensor, wanted, conversion, sparse_dim, block, dense_dim)


class _Conversion:
    """What is converted into what, and the errors that say so in torch's words."""

    def __init__(self, tensor: Any, wanted: Any, name: str) -> None:
        origin = "dense"
        if isinstance(tensor, SparseTensor):
            origin = "coo" if tensor.is_sparse else "sparse_compressed"
        self.layouts = tensor.layout, wanted
        self.kind = wanted.name.removeprefix("sparse_")
        #: What torch calls the conversion to this layout, and the function that was called.
        self.to_kind = f"{origin}_to_sparse_{self.kind}"
        self.name = f"{origin}_{name}"
        if name == "to_sparse" and origin == "coo":
            self.name = "sparse_coo_to_sparse"
        if tensor.layout is wanted:
            self.name = name

    def refused(self, what: str | None, why: str = "", name: str | None = None) -> RuntimeError:
        """Return the error for an argument, or for a kind of tensor."""
        given = f"with {what} " if what is not None else ""
        kinds = [title(each) for each in self.layouts]
        return RuntimeError(
            f"{name or self.name}: conversion from {kinds[0]} to {kinds[1]} {given}{why}is not supported"
        )

    def checked_blocksize(self, blocksize: Any) -> tuple[int, int]:
        """Return the size of blocks, and refuse one of what has none."""
        blocked = getattr(self.layouts[1], "blocked", False)
        if isinstance(blocksize, int):
            blocksize = blocksize, blocksize
        sizes = (1, 1) if blocksize is None else tuple(blocksize)
        if blocksize is None and blocked:
            kinds = [title(each) for each in self.layouts]
            raise RuntimeError(
                f"{self.name}: conversion from {kinds[0]} to {kinds[1]} without blocksize argument given "
                "is not supported"
            )
        if len(sizes) != 2:
            raise RuntimeError(
                f"{self.name}: blocksize needs to be a tuple of size 2, but got {len(sizes)}"
            )
        if min(sizes) <= 0:
            raise RuntimeError(
                f"{self.name}: blocksize needs to be positive, but got {list(sizes)}"
            )
        if blocksize is not None and not blocked:
            raise self.refused("blocksize argument given")
        return sizes

    def check_divisible(self, sizes: tuple[int, ...], block: tuple[int, int]) -> None:
        """Refuse matrices that blocks do not fill."""
        if sizes[0] % block[0] or sizes[1] % block[1]:
            raise RuntimeError(
                f"{self.to_kind}: tensor sparse size ({sizes[0]},{sizes[1]}) must be divisible by given "
                f"blocksize ({block[0]},{block[1]})"
            )

    def refuse_dense_dim(self, dense_dim: int | None) -> None:
        """Refuse a number of dense dimensions: a sparse tensor has its own."""
        if dense_dim is not None:
            raise self.refused("dense_dim argument given")


def _of_compressed(
    tensor: CompressedTensor,
    wanted: Any,
    conversion: _Conversion,
    sparse_dim: int | None,
    block: tuple[int, int],
    dense_dim: int | None,
) -> Any:
    conversion.refuse_dense_dim(dense_dim)
    if wanted is sparse_coo:
        if sparse_dim not in (None, 2):
            raise conversion.refused("sparse_dim argument !=2")
        return coo_of_compressed(tensor)
    own = tensor._layout
    if own.blocked and not wanted.blocked:
        raise RuntimeError(
            f"{conversion.to_kind}: expected SparseCsr or SparseCsc layout but got {title(own)}"
        )
    if own.blocked and block != tensor._blocksize:
        raise conversion.refused(
            f"blocksize changed from {list(tensor._blocksize)} to {list(block)}"
        )
    if own is wanted:
        return tensor
    conversion.check_divisible(tensor._shape[tensor._batch : tensor._batch + 2], block)
    return compressed_of_coo(coo_of_compressed(tensor), wanted, block, tensor._starts.dtype)


def _of_dense(
    tensor: Any,
    wanted: Any,
    conversion: _Conversion,
    sparse_dim: int | None,
    block: tuple[int, int],
    dense_dim: int | None,
) -> Any:
    count, name = tensor.dim(), conversion.name
    if wanted is not sparse_coo:
        if count < 2:
            raise RuntimeError(
                f"{name}: expected a matrix or a batch of matrices, got shape {list(tensor.shape)}"
            )
        if dense_dim is not None and not 0 <= dense_dim <= count - 2:
            raise RuntimeError(
                f"{name}: dense_dim argument must be in [0,{count - 2}] range, but {dense_dim} is given"
            )
        ahead = count - (dense_dim or 0)
        if 0 in tensor.shape[: ahead - 2]:
            raise RuntimeError(
                f"to_sparse_{conversion.kind}: Expected product of batch dimensions to be non-zero."
            )
        conversion.check_divisible(tuple(tensor.shape[ahead - 2 : ahead]), block)
        return compressed_of_coo(coo_of_dense(tensor, ahead), wanted, block)
    chosen = sparse_dim if sparse_dim is not None else count - (dense_dim or 0)
    if not (0 < chosen <= count or chosen == count):
        raise RuntimeError(
            f"{name}: sparse_dim argument must be in >0 range and not larger than the {count} dimensions, "
            f"got {chosen}"
        )
    return coo_of_dense(tensor, chosen)


def rebuilt(
    shown: layout, saved: tuple[Any, ...], requires_grad: bool, attributes: dict[str, Any]
) -> Any:
    """Return the sparse tensor that a pickle holds the parts of."""
    made: Any = of_parts(shown, saved)
    made.__dict__.update(attributes)
    return made.requires_grad_() if requires_grad else made


def of_parts(shown: Any, parts: Any) -> Any:
    """Return the sparse tensor of a layout and what torch's files hold after it.

    Raises
    ------
    ValueError
        If the parts are of other kinds.
    """
    if shown is sparse_coo and len(parts) in (3, 4) and _are_tensors(parts[:2]):
        indices, values, size, *known = parts
        made: Any = sparse_coo_tensor(indices, values, tuple(size))
        return made._coalesced_(made._coalesced or known == [True])
    if shown in COMPRESSED and len(parts) == 4 and _are_tensors(parts[:3]):
        starts, plain, values = parts[:3]
        batch = starts.dim() - 1
        # Without memory nothing says how many elements there are.
        if not starts.is_meta and not bool(
            starts.any()
        ):  # also the first reading of torch's old format, over zeros
            plain, values = plain.narrow(batch, 0, 0), values.narrow(batch, 0, 0)
        return sparse_compressed_tensor(starts, plain, values, tuple(parts[3]), layout=shown)
    raise ValueError(f"a tensor of layout {shown!r} of {len(parts)} parts")


def _are_tensors(parts: Any) -> bool:
    return all([isinstance(part, TensorBase) for part in parts])
