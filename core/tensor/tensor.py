"""The Tensor class: attributes, memory, views, gradient, conversion, and its life as a Python value.

Its state is in :mod:`.base`, operators and indexing in :mod:`.operators`. The methods that are ops (``sum``,
``reshape``, ``add_`` …) come from the declarations in :mod:`.ops`; for type checkers and editors they are
listed in :mod:`.methods`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from ..device.device import CPU, Device
from ..device.dtypes import DType, uint8
from ..dispatch import composite_results, execution, fast_path, layers, op_registry, overrides
from ..dispatch.fast_path import is_operand
from ..dispatch.interception import Intercepted
from ..dispatch.state import dispatch_state
from ..errors import check_flag, warn
from . import base, copies, exposure
from .array_operands import beside_array
from .base import TRACKED, TensorBase, extra_of, new_tensor, storage_of, version_of
from .conversion import CAST, converted, to_format
from .copies import of_class
from .host import from_array, readable, to_array, to_dlpack, to_numpy
from .layout import check_format, contiguous_format, in_format, layout, strided
from .legacy import legacy_of, legacy_tensor, type_name, type_named
from .mapped import mapped
from .methods import TensorMethods
from .printing import tensor_html, tensor_repr
from .shapes import Size, as_size, normalize_dim

if TYPE_CHECKING:
    from .storages import UntypedStorage
    from .typed_storages import TypedStorage

_handle = op_registry.handle
ADJOINT = _handle("adjoint")
MATRIX_H = _handle("matrix_H")
REAL = _handle("real")
IMAG = _handle("imag")
VIEW = _handle("view")


class Tensor(TensorMethods):
    """A multi-dimensional array on a device that records operations for differentiation.

    Tensors are made by ``tp.tensor``, ``tp.zeros`` and the like, or as results of ops.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([[2., 4.],
            [6., 8.]])
    """

    __slots__ = ("__dict__", "__weakref__")

    # What the functional transforms of autograd tell tensors by: whether a dimension is hidden, and the
    # tangents of forward mode, by level.
    _batched = False
    _tangents: Any = None

    __array_priority__ = 1000  # NumPy arrays leave binary operators to us

    if TYPE_CHECKING:  # see Operators

        def __radd__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __rlshift__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __rrshift__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __rxor__(self, other: Any) -> Tensor: ...

    def __new__(cls, *data: Any, device: Device | str | None = None) -> Self:
        """Build a tensor of the default dtype from sizes or a sequence, as ``torch.Tensor`` does."""
        made: Any = legacy_tensor(*data, device=device)
        result: Self = made if cls is Tensor else of_class(made, cls)
        return result

    # --- what it is ---

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        return as_size(self._shape)

    def size(self, dim: int | None = None) -> Any:
        """Return the size of all dimensions, or of one."""
        if dim is None:
            return as_size(self._shape)
        if not self._shape:
            raise IndexError(f"size(): a 0-d tensor has no dimension {dim}")
        return self._shape[normalize_dim(dim, len(self._shape), "size")]

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self._shape)

    ndimension = dim

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self._shape)

    nelement = numel

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._key.dtype

    @property
    def device(self) -> Device:
        """Where the data lives."""
        return self._key.device

    @property
    def layout(self) -> layout:
        """How elements are stored: ``tp.strided``, but of sparse tensors."""
        return strided

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._key.dtype.itemsize

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return self._key.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self._key.dtype.itemsize

    @property
    def is_meta(self) -> bool:
        """Whether the tensor is on the "meta" device, without data."""
        if dispatch_state.layers_active:
            layers.note_hidden("what is done without data")
        return self._key.is_meta

    def is_floating_point(self) -> bool:
        """Return whether the dtype is a floating-point one."""
        return self._key.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Return whether the dtype is a complex one."""
        return self._key.dtype.is_complex

    def is_signed(self) -> bool:
        """Return whether the dtype has a sign."""
        return self._key.dtype.is_signed

    def get_device(self) -> int:
        """Return the index of the device; -1 where there is one device without an index."""
        index = self._key.device.index
        return -1 if index is None else index

    def is_nonzero(self) -> bool:
        """Return whether the only element is not zero."""
        return bool(self)

    def is_same_size(self, other: Tensor) -> bool:
        """Return whether another tensor has the same shape."""
        return self._shape == other._shape

    # --- memory ---

    def stride(self, dim: int | None = None) -> Any:
        """Return the step in memory, in elements, along all dimensions or one."""
        strides = self._key.runtime.strides(self._array)
        if dim is None:
            return strides
        return strides[normalize_dim(dim, len(self._shape), "stride")]

    def storage_offset(self) -> int:
        """Return how many elements of the storage lie before the first of this tensor."""
        if dispatch_state.layers_active:
            layers.note_opaque("reading storage_offset()")
        return self._key.runtime.storage_offset(self._array)

    def data_ptr(self) -> int:
        """Return the address of the first element; 0 of none."""
        if dispatch_state.layers_active:
            layers.note_read(self, "data_ptr()")
        if exposure.watched:
            exposure.hand_out(self._array)
        return 0 if 0 in self._shape else self._key.runtime.data_pointer(self._array)

    const_data_ptr = data_ptr

    def untyped_storage(self) -> UntypedStorage:
        """Return the memory that the tensor is part of, as bytes.

        Examples
        --------
        >>> import tensorplug as tp
        >>> x = tp.arange(6.0)
        >>> x[2:].untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        True
        """
        from .storages import UntypedStorage  # on first use: saves import time

        if dispatch_state.layers_active:
            layers.note_opaque("untyped_storage()")
        if exposure.watched:
            exposure.hand_out(self._array)
        return UntypedStorage._over(self)

    def storage(self) -> TypedStorage:
        """Return the memory that the tensor is part of, read as its dtype.

        Warns as torch does that it is deprecated.
        """
        from .typed_storages import storage_of_tensor  # on first use: saves import time

        return storage_of_tensor(self, warn=True)

    def _typed_storage(self) -> TypedStorage:
        from .typed_storages import storage_of_tensor  # on first use: saves import time

        return storage_of_tensor(self)

    def storage_type(self) -> Any:
        """Return the class of the tensor's storage, such as ``tp.FloatStorage``."""
        from .typed_storages import typed_class  # on first use: saves import time

        return typed_class(self._key.dtype)

    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        """Return whether the elements lie in memory in the order of a format, without gaps."""
        if memory_format is contiguous_format:
            return self._key.runtime.is_contiguous(self._array)
        check_format(memory_format, "is_contiguous")
        return in_format(self._shape, self.stride(), memory_format)

    def is_set_to(self, tensor: Tensor) -> bool:
        """Return whether both show the same memory in the same way."""
        return (
            self._key is tensor._key
            and self._shape == tensor._shape
            and self.stride() == tensor.stride()
            and self.data_ptr() == tensor.data_ptr()
            and (self is tensor or 0 not in self._shape or storage_of(self) is storage_of(tensor))
        )

    @property
    def _base(self) -> Tensor | None:
        """The tensor that this one is a view of, or None."""
        if dispatch_state.layers_active:
            layers.note_opaque("reading _base")
        return None if self._view is None else self._view.base

    def _is_view(self) -> bool:
        return self._base is not None

    def is_pinned(self, device: Any = None) -> bool:
        """Return whether this host memory is locked for copies to a device."""
        if dispatch_state.layers_active:
            layers.note_opaque("is_pinned()")
        from ..device.pinned_memory import is_pinned  # on first use: saves import time

        return is_pinned(self, device)

    def pin_memory(self, device: Any = None) -> Any:
        """Return the contents in host memory that is locked for fast copies to a device.

        The tensor itself is returned where no loaded device makes a difference.

        Parameters
        ----------
        device : Device or str, optional
            Which device; by default the first loaded one that offers locked memory.
        """
        from ..device.pinned_memory import pin  # on first use: saves import time

        return pin(self, device)

    def record_stream(self, stream: Any) -> None:
        """Keep the tensor's memory until a stream that uses it is done.

        A device whose work is not queued on streams does nothing.

        Parameters
        ----------
        stream : Stream
            Of the tensor's device type, other than the one on which it was made.
        """
        self._key.runtime.record_stream(self._array, stream)

    def is_shared(self) -> bool:
        """Return whether other processes can see the memory."""
        if dispatch_state.layers_active:
            layers.note_opaque("is_shared()")
        from .shared_memory import is_shared  # on first use: saves import time

        return is_shared(self)

    def share_memory_(self) -> Self:
        """Move the tensor to memory that other processes can share; return it.

        A process that the tensor is then handed to, as an argument, in a queue or by "fork", sees
        each write to it, and writes to it itself. Views that were made before keep the old memory.

        Raises
        ------
        NotImplementedError
            If the device, or the system, has no such memory.

        Examples
        --------
        >>> import tensorplug as tp
        >>> tp.zeros(2).share_memory_().is_shared()
        True
        """
        from .shared_memory import share  # on first use: saves import time

        share(self)
        return self

    # --- views ---

    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix."""
        return MATRIX_H.call(self)

    @property
    def mH(self) -> Tensor:
        """The conjugate transpose of a matrix or of each matrix of a batch."""
        return ADJOINT.call(self)

    # --- parts of complex numbers ---

    @property
    def real(self) -> Tensor:
        """The real parts, a view; the tensor itself if it is real."""
        return REAL.call(self)

    @real.setter
    def real(self, value: Any) -> None:
        self.real.copy_(value)

    @property
    def imag(self) -> Tensor:
        """The imaginary parts, a view."""
        return IMAG.call(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag.copy_(value)

    # --- gradient ---

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the tensor are recorded for differentiation."""
        state = self._state
        return dispatch_state.gradient.requires_grad(self) if state > TRACKED else bool(state)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if type(value) is not bool:
            raise RuntimeError(f"requires_grad must be a bool, got {value!r}")
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Make a leaf require grad or not; return the tensor."""
        if dispatch_state.layers_active:
            layers.note_requires_grad(self)
        elif requires_grad is False and not self._state:
            return self  # it never did
        check_flag(requires_grad, "requires_grad_", "requires_grad")
        dispatch_state.gradient.set_requires_grad(self, requires_grad)
        return self

    @property
    def grad_fn(self) -> Any:
        """The node of the graph that made this tensor, or None for a leaf."""
        if dispatch_state.layers_active:
            layers.note_opaque("reading grad_fn")
        return dispatch_state.gradient.grad_fn(self)

    @property
    def output_nr(self) -> int:
        """Which output of its ``grad_fn`` this tensor is."""
        return 0 if self._extra is None else self._extra.output_nr

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor was made by the user rather than by a recorded operation."""
        if self._node is None and self._view is None and not dispatch_state.layers_active:
            return True
        return not self.requires_grad or self.grad_fn is None

    @property
    def grad(self) -> Tensor | None:
        """The gradient that ``backward`` accumulated, or None."""
        if dispatch_state.layers_active:
            layers.note_grad(self)
        gradient = None if self._extra is None else self._extra.grad
        made = self._node is not None or self._view is not None
        if gradient is None and self._state and made and not (self.is_leaf or self.retains_grad):
            warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
                "attribute won't be populated during autograd.backward(). If you indeed want the .grad "
                "field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. "
                "If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead.",
                UserWarning,
            )
        return gradient

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if dispatch_state.layers_active:
            layers.note_opaque("setting grad")
        if value is not None:
            if not isinstance(value, TensorBase):
                raise TypeError(
                    "assigned grad expected to be a Tensor or None but got grad of type "
                    f"{type(value).__name__}"
                )
            if value is self:
                raise RuntimeError("can't assign a Variable as its own grad")
            if value._shape != self._shape:
                raise RuntimeError(
                    f"attempting to assign a gradient of size '{list(value._shape)}' to a tensor of size "
                    f"'{list(self._shape)}'. Please ensure that the gradient and the tensor are the same size"
                )
            if value._key is not self._key and not _same_kind(value, self):
                raise RuntimeError(
                    f"assigned grad is {value.dtype} on {value.device}, the tensor "
                    f"{self._key.dtype} on {self._key.device}"
                )
        elif self._extra is None:
            return
        extra_of(self).grad = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    _grad = grad  # torch's name where no warning is wanted; some programs set it

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the derivatives of this tensor to the ``grad`` of the leaves it was computed from.

        Parameters
        ----------
        gradient : Tensor, optional
            The derivative of some scalar with respect to this tensor; may be left out for one element.
        retain_graph : bool, optional
            Keep what the graph saved, for another backward; by default the value of `create_graph`.
        create_graph : bool
            Record the backward computation itself, for higher derivatives.
        inputs : sequence of Tensor, optional
            Accumulate into these only.
        """
        dispatch_state.gradient.backward(self, gradient, retain_graph, create_graph, inputs)

    def retain_grad(self) -> None:
        """Keep the gradient of a non-leaf tensor in its ``grad`` during backward."""
        if dispatch_state.layers_active:
            layers.note_opaque("retain_grad()")
        dispatch_state.gradient.retain_grad(self)

    @property
    def retains_grad(self) -> bool:
        """Whether a non-leaf tensor keeps its gradient."""
        if dispatch_state.layers_active:
            layers.note_opaque("reading retains_grad")
        return self._extra is not None and self._extra.retains_grad

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Call `hook(grad)` when the gradient is computed; what it returns replaces the gradient."""
        if dispatch_state.layers_active:
            layers.note_opaque("register_hook()")
        return dispatch_state.gradient.register_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        """Call `hook(tensor)` after the gradient of a leaf was accumulated."""
        if dispatch_state.layers_active:
            layers.note_opaque("register_post_accumulate_grad_hook()")
        return dispatch_state.gradient.register_post_accumulate_grad_hook(self, hook)

    def detach_(self) -> Self:
        """Take the tensor out of the graph that made it; return it."""
        if dispatch_state.layers_active:
            layers.note_opaque("detach_()")
        dispatch_state.gradient.detach_(self)
        return self

    @property
    def data(self) -> Tensor:
        """The same memory without gradient, and with a version counter of its own.

        Writing to it is not noticed by autograd; ``detach()`` is the safer way.
        """
        if exposure.watched:
            exposure.hand_out(self._array)
        if self._key.intercepts and overrides.dispatches(type(self)):
            return self.detach()
        shown = new_tensor(self._array, self._key, self._shape)
        if self._storage is not None:
            own = storage_of(shown)  # as a view, whose elements may share memory
            if self._storage.mirror is not None:
                own.mirror = self._storage.mirror.untracked()
        if self._extra is not None and self._extra.inference:
            extra_of(shown).inference = True
        return shown

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, TensorBase):
            raise TypeError(f"data must be a Tensor, got {type(value).__name__}")
        if self._state and not value.dtype.is_floating_point and not value.dtype.is_complex:
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point or complex dtype, "
                f"got {value.dtype}"
            )
        if value.layout is not self.layout:
            raise RuntimeError(
                "setting data: the tensor and the new data have incompatible tensor type: "
                f"{self.layout} and {value.layout}"
            )
        if dispatch_state.layers_active:
            layers.note_opaque("setting data")
        self._array, self._key, self._shape = value._array, value._key, value._shape

    @property
    def _cdata(self) -> int:
        # Programs ask by it whether two names are of one tensor; in torch it is an address.
        if dispatch_state.layers_active:
            layers.note_opaque("reading _cdata")
        return id(self)

    @property
    def _version(self) -> int:
        """How often the memory was written to in place."""
        if dispatch_state.layers_active:
            layers.note_opaque("reading _version")
        if self.is_inference():
            raise RuntimeError("Inference tensors do not track version counter.")
        return version_of(self)

    def is_inference(self) -> bool:
        """Return whether the tensor was made in inference mode."""
        if dispatch_state.layers_active:
            layers.note_opaque("is_inference()")
        return self._extra is not None and self._extra.inference

    # --- other devices, dtypes, classes and libraries ---

    def to(self: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Return the tensor on another device and/or with another dtype.

        ``to(dtype)``, ``to(device)``, ``to(device, dtype)``, ``to(other)``, each with ``non_blocking``,
        ``copy`` and ``memory_format``. The tensor itself is returned if nothing changes and `copy` is
        False. With ``non_blocking=True`` a copy between the host and a device may be under way at the
        return: synchronize the device before the host reads the result, or writes over a source in pinned
        memory.
        """
        if len(args) == 1 and not kwargs:
            wanted = args[0]
            if type(wanted) is DType:
                return self if wanted is self._key.dtype else CAST.call(self, wanted)
            here = self._key.device
            if wanted is here or (here is CPU and type(wanted) is str and wanted == "cpu"):
                return self
            if isinstance(wanted, TensorBase) and wanted._key is self._key:
                return self
        elif len(kwargs) == 1 and (not args or (len(args) == 1 and type(args[0]) is DType)):
            chosen = kwargs.get("memory_format")
            if chosen is not None:
                return to_format(self, chosen, None, args[0] if args else None)
        return converted(self, args, kwargs)

    def to_device(self, device: Device | str, /, *, stream: Any = None) -> Tensor:
        """Return the tensor on another device, as the array API standard spells it.

        Raises
        ------
        ValueError
            If a `stream` is named; the current one of the device is used.
        """
        if stream is not None:
            raise ValueError(f"to_device(): stream must be None, got {stream!r}")
        return self.to(device)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool = True) -> Any:
        """Return the tensor, converted if a dtype is given: it is dense already."""
        return self if dtype is None else self.to(dtype=dtype)

    def cpu(self: Any, memory_format: Any = None) -> Tensor:
        """Return the tensor on the "cpu" device."""
        if memory_format is None and self._key.device is CPU:
            return self
        return self.to("cpu", memory_format=memory_format)

    def type(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the tensor's type, or the tensor converted to `dtype`."""
        if dtype is None:
            return type_name(self)
        chosen, device = type_named(dtype)
        return self.to(device=device, dtype=chosen, non_blocking=non_blocking)

    def type_as(self, tensor: Tensor) -> Tensor:
        """Return the tensor with the dtype and on the device of another."""
        if getattr(tensor, "_key", None) is self._key:
            return self
        if not isinstance(tensor, TensorBase):
            raise TypeError(
                f"type_as(): argument 'other' must be Tensor, not {type(tensor).__name__}"
            )
        return self.to(tensor)

    def numpy(self: Any, *, force: bool = False) -> Any:
        """Return a NumPy array that shares the tensor's memory.

        Parameters
        ----------
        force : bool
            Detach and copy to the host first, so that any tensor can be converted.
        """
        return to_numpy(self, force=force)

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
        return to_array(self, dtype, copy)

    def __array_wrap__(
        self, array: Any, context: Any = None, return_scalar: bool = False
    ) -> Tensor:
        """Return what a function of NumPy computed of a tensor as one; truth values become uint8."""
        return from_array(array, flags=uint8)

    def __dlpack__(
        self: Any,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        options = {
            "stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy,
        }  # fmt: skip
        if exposure.watched:
            exposure.hand_out(self._array)
        return to_dlpack(self, {name: v for name, v in options.items() if v is not None})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._key.runtime.dlpack_device(self._array)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return dispatch_state.array_namespace(api_version)

    def as_subclass(self, cls: Any) -> Any:
        """Return a tensor of class `cls` over the same memory; gradients flow back from it.

        Examples
        --------
        >>> import tensorplug as tp
        >>> class Labels(tp.Tensor):
        ...     pass
        >>> x = tp.ones(2).as_subclass(Labels)
        >>> x + x
        Labels([2., 2.])
        """
        if not (isinstance(cls, type) and issubclass(cls, Tensor)):
            raise TypeError(f"as_subclass(): expected a subclass of Tensor, got {cls!r}")
        source = self
        if self._state or self._extra is not None:  # a leaf, and what it has, stays its own
            with overrides.DisableTorchFunction():
                source = execution.show(VIEW, self, (self._shape,), self._shape)
        return of_class(source, cls)

    @staticmethod
    def _make_subclass(kind: Any, data: Tensor, require_grad: bool = False, **_: Any) -> Any:
        """Return a leaf of class `kind` over the memory of `data`."""
        with overrides.DisableTorchFunction():
            result = of_class(data.detach(), kind)
            if require_grad:
                result.requires_grad_()
        return result

    @staticmethod
    def _make_wrapper_subclass(kind: Any, size: Any, *args: Any, **options: Any) -> Any:
        """Return a tensor of class `kind` without memory, whose ops its ``__torch_dispatch__`` computes."""
        from .wrappers import make_wrapper  # on first use: saves import time

        return make_wrapper(kind, size, *args, **options)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Make a call of a function of tensors in which one of this class takes part.

        A subclass may define it anew, as a class method. By default tensors among the results are of the
        class.

        Parameters
        ----------
        func : callable
            What was called: a function, a method of Tensor, or ``__get__`` of one of its attributes.
        types : tuple of type
            The classes among the arguments' that define this method.
        args, kwargs
            The arguments.
        """
        return overrides.default(cls, func, types, args, kwargs)

    #: What a subclass that defines it hands calls on to: they are made on the memory behind.
    __torch_dispatch__ = staticmethod(overrides.disabled_torch_dispatch_impl)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        overrides.prepare(cls)
        if overrides.dispatches(cls) and cls.detach is Tensor.detach:
            from .wrappers import detach  # on first use: saves import time

            made: Any = cls
            made.detach = detach

    def __copy__(self) -> Tensor:
        return copies.shallow(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return copies.deep(self, memo)

    def __getstate__(self) -> Any:
        """Return what is kept beside the memory: attributes, and slots that a class of somebody's own has."""
        return copies.state_of(self)

    def __setstate__(self, state: Any) -> None:
        copies.set_state(self, state)

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        from .host_memory import reduce_tensor  # on first use: saves import time

        return reduce_tensor(self)

    def new(self, *data: Any, size: Any = None, device: Any = None) -> Any:
        """Return a tensor of this dtype and device from sizes or a sequence, as ``tp.Tensor``."""
        data = data if size is None else tuple(size)
        return legacy_of(data, self._key.dtype, self._key.device, device)

    def apply_(self, function: Callable[[Any], Any]) -> Self:
        """Replace each element x by ``function(x)``, one by one; for "cpu" tensors, and slow."""
        return mapped(self, "apply_", function)

    def map_(self, tensor: Any, callable: Callable[[Any, Any], Any]) -> Self:
        """Replace each element x by ``callable(x, y)``, one by one, with `tensor`'s element y; slow."""
        return mapped(self, "map_", callable, tensor)

    def map2_(self, x: Any, y: Any, callable: Callable[[Any, Any, Any], Any]) -> Self:
        """Replace each element by ``callable(element, its in x, its in y)``, one by one; slow."""
        return mapped(self, "map2_", callable, x, y)

    # --- container ---

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a 0-d tensor")
        return self._shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self) -> Tensor:
        this: Any = self
        return this.flip(0) if self._shape else self

    def __contains__(self, element: Any) -> bool:
        if not is_operand(element):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
            )
        return bool((self == element).any().item())

    # --- Python values ---

    def item(self) -> int | float | bool:
        """Return the only element as a Python number.

        Raises
        ------
        RuntimeError
            If there is not exactly one element.
        """
        if self._shape and math.prod(self._shape) != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        if dispatch_state.layers_active:
            layers.note_read(self, "item()")
        try:
            value: Any = self._key.runtime.to_host(self._array).item()
        except Intercepted:
            if not overrides.dispatches(type(self)):
                raise
            from .wrappers import item  # on first use: saves import time

            return item(self)
        if type(value) is tuple:  # a pair of halves
            value = complex(*value)
        return value

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""
        if dispatch_state.layers_active:
            layers.note_read(self, "tolist()")
        return readable(self._key.runtime.to_host(self._array)).tolist()

    def __bool__(self) -> bool:
        if math.prod(self._shape) != 1:
            raise RuntimeError(
                f"Boolean value of Tensor with {'no' if not self.numel() else 'more than one'} "
                f"value{'s' if not self.numel() else ''} is ambiguous"
            )
        return bool(self.item())

    def _number(self) -> Any:
        if math.prod(self._shape) != 1:  # ValueError, as in torch, where item() raises RuntimeError
            raise ValueError(
                "only one element tensors can be converted to Python scalars, got "
                f"{self.numel()} elements"
            )
        return self.item()

    def __int__(self) -> int:
        return int(self._real())

    def __float__(self) -> float:
        return float(self._real())

    def _real(self) -> Any:
        value = self._number() if self._shape else self.item()
        if isinstance(value, complex):
            if value.imag:
                raise RuntimeError(
                    "value cannot be converted to type double without overflow: "
                    f"{value} has an imaginary part"
                )
            return value.real
        return value

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        if self.dtype.category > 1 or math.prod(self._shape) != 1:
            raise TypeError(
                "only integer tensors of a single element can be converted to an index, got "
                f"{self.dtype} of shape {list(self._shape)}"
            )
        return int(self.item())

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return tensor_repr(self, contents=tensor_contents)

    def _repr_html_(self) -> str:
        return tensor_html(self)

    def __format__(self, spec: str) -> str:
        if not self._shape and type(self) is Tensor and not self.is_meta:
            return format(self.item(), spec)
        return object.__format__(self, spec)


def _same_kind(value: Any, tensor: Any) -> bool:
    """Return whether tensors of two layouts have one dtype and device."""
    return value.dtype is tensor.dtype and value.device == tensor.device


def _add_method(name: str, function: Callable[..., Any]) -> bool:
    """Add a method; return False if there is one of that name, such as a hand-written form."""
    if hasattr(Tensor, name):
        return False
    setattr(Tensor, name, function)
    return True


def _remove_method(name: str, function: Callable[..., Any]) -> None:
    if Tensor.__dict__.get(name) is function:
        delattr(Tensor, name)


base.set_tensor_class(Tensor)
overrides.tensor_class = Tensor
# As Python, isinstance is quickest with an object's own class, and a call of one function than of two.
fast_path.TensorBase = Tensor  # type: ignore[attr-defined]
fast_path.unset_tensor = functools.partial(TensorBase.__new__, Tensor)  # type: ignore[attr-defined]
composite_results.unset_tensor = fast_path.unset_tensor  # type: ignore[attr-defined]
base.blank = TensorBase.__new__
dispatch_state.add_method = _add_method
dispatch_state.beside_array = beside_array
dispatch_state.remove_method = _remove_method
