"""Sparse tensors: a Tensor that shows dense parts, its indices and its values, as one sparse tensor.

Ops on one are written in ops of its parts (:mod:`.calls`), so kernels see dense arrays only, and what is
recorded for differentiation is what happens to the values. A sparse tensor requires grad if its values
do, and its gradient is that of its values, shown as a sparse tensor again.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from tensorplug.core.device.device import Device
from tensorplug.core.dispatch.interception import NoArray, intercepting_key
from tensorplug.core.dispatch.keys import DispatchKey
from tensorplug.core.dispatch.overrides import disabled_torch_function_impl
from tensorplug.core.tensor.base import bare_tensor
from tensorplug.core.tensor.layout import layout
from tensorplug.core.tensor.shapes import Shape, as_shape
from tensorplug.core.tensor.tensor import Tensor

from .layouts import check_no_format, sparse_coo, sparse_csr, title
from .printing import sparse_repr

_keys: dict[tuple[DispatchKey, layout], DispatchKey] = {}


def _key_of(values: Any, shown: layout) -> DispatchKey:
    key = _keys.get((values._key, shown))
    if key is None:
        made = intercepting_key(values._key, _compute, reason_of(shown))
        key = _keys.setdefault((values._key, shown), made)
    return key


def reason_of(shown: layout) -> str:
    """Return what users read who ask for what a layout does not have."""
    return f"tensors of layout {shown.name} do not have that; convert with .to_dense()"


def _compute(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from .calls import compute  # it needs the classes below

    return compute(op, args, kwargs)


class SparseTensor(Tensor):
    """Base of sparse tensors; users make them by ``tp.sparse_coo_tensor`` and its like."""

    __slots__ = ("_shown_grad", "_stored")

    # What it does not compute raises: nothing to take over by results of its class.
    __torch_function__: Any = staticmethod(disabled_torch_function_impl)

    _stored: Any
    _layout: Any

    @classmethod
    def _bare(cls, values: Any, shape: Shape, shown: layout) -> Self:
        tensor: Any = bare_tensor(cls)
        tensor._key = _key_of(values, shown)
        tensor._array = NoArray(shape, reason_of(shown))
        tensor._shape = shape
        tensor._state = 0
        tensor._node = None
        tensor._writes = 0
        tensor._storage = None
        tensor._extra = None
        tensor._view = None
        tensor._stored = values
        tensor._shown_grad = None, None
        return tensor

    def _parts(self) -> tuple[Any, ...]:
        """Return the dense tensors that it shows, the values last."""
        raise NotImplementedError

    def _with(self, parts: tuple[Any, ...]) -> Any:
        """Return a sparse tensor like this one over other parts."""
        raise NotImplementedError

    def _with_values(self, values: Any) -> Any:
        """Return a sparse tensor with other values at the same places."""
        return self._with((*self._parts()[:-1], values))

    def _take(self, other: Any) -> Self:
        """Become what another sparse tensor of the layout is."""
        for name in ("_key", "_array", "_shape", "_stored", *type(self).__slots__):
            setattr(self, name, getattr(other, name))
        return self

    def _take_values(self, other: Any) -> Self:
        """Become what another is without a record; what tracks the values stays: node, hooks, gradient."""
        tracked, shown = self._stored, self.grad
        self._take(other)
        tracked.data = other._stored.detach()
        if shown is not None and tracked.grad._shape != tracked._shape:
            tracked.grad = None  # it had elements at other places
        self._stored = tracked
        self._shown_grad = tracked.grad, shown
        return self

    # --- what it is ---

    @property
    def layout(self) -> layout:
        """How elements are stored."""
        return self._layout

    @property
    def is_sparse(self) -> Literal[True, False]:
        """Whether each element is stored with its coordinates."""
        return self._layout is sparse_coo

    @property
    def is_sparse_csr(self) -> Literal[True, False]:
        """Whether elements are stored row by row."""
        return self._layout is sparse_csr

    @property
    def device(self) -> Device:
        """Where the parts live."""
        return self._stored.device

    @property
    def is_meta(self) -> bool:
        """Whether the parts are without data."""
        return bool(self._stored.is_meta)

    def sparse_dim(self) -> int:
        """Return how many dimensions are addressed by indices."""
        raise NotImplementedError

    def dense_dim(self) -> int:
        """Return how many dimensions each value has."""
        return len(self._shape) - self.sparse_dim()

    def _nnz(self) -> int:
        """Return how many elements are stored."""
        return int(self._stored._shape[0])

    def values(self) -> Any:
        """Return the stored elements."""
        return self._stored

    @property
    def nbytes(self) -> int:
        """Raise: it is the parts that have bytes."""
        raise RuntimeError(
            "nbytes is not defined for sparse tensors. If you want the size of the constituent tensors, "
            "add the nbytes of the indices and values. If you want the size of the equivalent dense "
            "tensor, multiply numel() by element_size()"
        )

    def stride(self, dim: int | None = None) -> Any:
        """Return zeros: elements do not lie at regular steps."""
        return (0,) * len(self._shape) if dim is None else 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Return False: elements do not lie row by row."""
        return False

    def is_pinned(self, device: Any = None) -> bool:
        """Return whether the parts are in memory that is locked for copies."""
        return bool(self._stored.is_pinned(device))

    @property
    def T(self) -> Any:
        """The tensor with all dimensions in reverse order."""
        return self.permute(tuple(range(len(self._shape)))[::-1])

    # --- gradient: that of the values ---

    @property
    def _in_graph(self) -> Any:
        return self._stored

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the values are recorded for differentiation."""
        return bool(self._stored.requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._stored.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Make the values of a leaf require grad or not; return the tensor."""
        self._stored.requires_grad_(requires_grad)
        return self

    @property
    def grad_fn(self) -> Any:
        """The node that made the values, or None for a leaf."""
        return self._stored.grad_fn

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor was made by the user rather than by a recorded operation."""
        return bool(self._stored.is_leaf)

    @property
    def grad(self) -> Any:
        """The gradient that ``backward`` accumulated, a sparse tensor, or None."""
        gradient = self._stored.grad
        if gradient is None:
            self._shown_grad = None, None
        elif self._shown_grad[0] is not gradient:
            self._shown_grad = gradient, self._gradient_over(gradient)
        return self._shown_grad[1]

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            if not self._holds(value):
                raise RuntimeError(
                    f"the gradient of a tensor of layout {self._layout.name} has to be one with elements at "
                    "the same places"
                )
            value = self._values_of(value)
        self._stored.grad = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def _gradient_over(self, gradient: Any) -> Any:
        """Return the gradient of the tensor, from that of its values."""
        return self._with_values(gradient)

    def _values_of(self, gradient: Any) -> Any:
        """Return the gradient of the values, from that of the tensor: what it has at their places."""
        from .arithmetic import sparse_mask  # it needs this module

        return sparse_mask(gradient, self)._stored

    def _holds(self, other: Any) -> bool:
        """Return whether all elements of another sparse tensor are at places of this one."""
        from .arithmetic import all_found  # it needs this module

        return isinstance(other, SparseTensor) and all_found(other, self)

    def retain_grad(self) -> None:
        """Keep the gradient of a non-leaf tensor in its ``grad`` during backward."""
        self._stored.retain_grad()

    @property
    def retains_grad(self) -> bool:
        """Whether a non-leaf tensor keeps its gradient."""
        return bool(self._stored.retains_grad)

    def register_hook(self, hook: Any) -> Any:
        """Call `hook(grad)` when the gradient is computed; what it returns replaces the gradient."""

        def of_values(gradient: Any) -> Any:
            replaced = hook(self._with_values(gradient))
            return None if replaced is None else self._values_of(replaced)

        return self._stored.register_hook(of_values)

    def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
        """Call `hook(tensor)` after the gradient of a leaf was accumulated."""
        return self._stored.register_post_accumulate_grad_hook(lambda _: hook(self))

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the derivatives of this tensor to the ``grad`` of the leaves it was computed from."""
        if gradient is not None:
            gradient = self._values_of(gradient)
        self._stored.backward(gradient, retain_graph, create_graph, inputs)

    def detach(self) -> Any:
        """Return a tensor over the same parts that requires no grad."""
        return self._with_values(self._stored.detach())

    def detach_(self) -> Self:
        """Take the tensor out of the graph that made it; return it."""
        self._stored = self._stored.detach()
        return self

    @property
    def data(self) -> Any:
        """The same parts without gradient."""
        return self._with_values(self._stored.data)

    @data.setter
    def data(self, value: Any) -> None:
        if value.layout is not self._layout:
            raise TypeError(
                f"data must be a tensor of layout {self._layout.name}, got {type(value).__name__}"
            )
        self._take_values(value)

    # --- other devices and libraries ---

    def clone(self, *, memory_format: Any = None) -> Any:
        """Return a copy of the tensor."""
        check_no_format("clone", memory_format)
        return super().clone()

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Return the tensor on another device and/or with another dtype."""
        if len(args) == 1 and isinstance(args[0], SparseTensor):
            args = (args[0]._stored,)
        check_no_format("to", kwargs.get("memory_format"))
        parts = self._parts()
        values = parts[-1].to(*args, **kwargs)
        if values is parts[-1]:
            return self
        return self._with((*[part.to(values.device) for part in parts[:-1]], values))

    def numpy(self, *, force: bool = False) -> Any:
        """Raise: NumPy has no sparse arrays."""
        raise TypeError(
            f"can't convert {title(self._layout)} layout tensor to numpy. Use Tensor.to_dense() first."
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.numpy()

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError(f"tensors of layout {self._layout.name} cannot be exchanged by DLPack")

    def resize_(self, *sizes: Any, memory_format: Any = None) -> Any:
        """Give a matrix that is stored row by row other sizes, in place."""
        from .resizing import resized  # it needs this module

        return resized(self, as_shape(sizes, "resize_"))

    def resize_as_(self, the_template: Any, memory_format: Any = None) -> Any:
        """Give the tensor the sizes of another of its layout, in place."""
        from .resizing import resized_as  # it needs this module

        return resized_as(self, the_template)

    def share_memory_(self) -> Self:
        """Move the parts to memory that other processes can share; return the tensor."""
        for part in self._parts():
            part.share_memory_()
        return self

    def is_shared(self) -> bool:
        """Return whether other processes can see the parts."""
        return bool(self._stored.is_shared())

    # --- conversions ---

    def to_dense(self, dtype: Any = None, *, masked_grad: bool = True) -> Any:
        """Return the dense tensor of the same elements.

        Parameters
        ----------
        dtype : dtype, optional
            Convert to it.
        masked_grad : bool
            Accepted as in torch; the gradient is always that of the stored elements.
        """
        dense = self._dense()
        return dense if dtype is None else dense.to(dtype)

    def _dense(self) -> Any:
        raise NotImplementedError

    def tolist(self) -> Any:
        """Raise: what is not stored is in no list."""
        raise RuntimeError(
            f"tolist(): a tensor of layout {self._layout.name} has no lists of all elements; convert with "
            ".to_dense() first"
        )

    def data_ptr(self) -> int:
        """Raise: it is the parts that have memory."""
        raise RuntimeError(
            f"data_ptr(): a tensor of layout {self._layout.name} has no memory of its own, its parts have"
        )

    def item(self) -> Any:
        """Return the only element as a Python number."""
        if math.prod(self._shape) != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return self.to_dense().item()

    # --- Python ---

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a 0-d tensor")
        return self._shape[0]

    def __iter__(self) -> Any:
        if not self._shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter([self[number] for number in range(self._shape[0])])

    def __getitem__(self, key: Any) -> Any:
        from .indexing import get_item  # it needs this module

        return get_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("Cannot assign to a sparse tensor")

    def __contains__(self, element: Any) -> bool:
        return bool((self._stored == element).any()) or (
            element == 0 and self._nnz() < self.numel()
        )

    def as_subclass(self, cls: Any) -> Any:
        """Return the tensor as one of its own class; there are no others that are sparse."""
        if cls not in (type(self), Tensor):
            raise TypeError(
                f"as_subclass(): a tensor of layout {self._layout.name} cannot be a {cls.__name__}"
            )
        return self._with(self._parts())

    def __copy__(self) -> Any:
        result = self._with(self._parts())
        result.__dict__.update(self.__dict__)
        return result

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        from copy import deepcopy

        result = memo[id(self)] = self._with(
            tuple([deepcopy(part, memo) for part in self._parts()])
        )
        if self.grad is not None:  # one tensor, wherever it is found in what is copied
            shown = deepcopy(self.grad, memo)
            if shown._stored is result._stored.grad:
                result._shown_grad = result._stored.grad, shown
        result.__dict__.update(deepcopy(self.__dict__, memo))
        return result

    def _saved(self) -> tuple[Any, ...]:
        """Return what torch's files hold of it, after its layout."""
        raise NotImplementedError

    def __reduce_ex__(self, protocol: Any) -> Any:
        from .conversions import rebuilt  # it needs this module

        tracked = self.requires_grad
        return rebuilt, (self._layout, self.detach()._saved(), tracked, dict(self.__dict__))

    # mypy forgets what parameters of such methods are called.
    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        return sparse_repr(self)

    def _repr_html_(self) -> str:
        return f"<pre>{sparse_repr(self)}</pre>"
