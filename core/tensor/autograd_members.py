"""The attributes and methods of Tensor that autograd answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from ..dispatch.state import dispatch_state
from .base import TRACKED, TensorBase, extra_of, new_tensor, storage_of, version_of
from .dtype_methods import Conversions

if TYPE_CHECKING:
    from .tensor import Tensor


class Differentiation(Conversions):
    """Base of Tensor with what concerns its gradient and the graph."""

    __slots__ = ()

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the tensor are recorded for differentiation."""
        state = self._state
        return dispatch_state.gradient.requires_grad(self) if state > TRACKED else bool(state)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Make a leaf require grad or not; return the tensor."""
        dispatch_state.gradient.set_requires_grad(self, bool(requires_grad))
        return self

    @property
    def grad_fn(self) -> Any:
        """The node of the graph that made this tensor, or None for a leaf."""
        return dispatch_state.gradient.grad_fn(self)

    @property
    def output_nr(self) -> int:
        """Which output of its ``grad_fn`` this tensor is."""
        return 0 if self._extra is None else self._extra.output_nr

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor was made by the user rather than by a recorded operation."""
        return not self.requires_grad or self.grad_fn is None

    @property
    def grad(self) -> Tensor | None:
        """The gradient that ``backward`` accumulated, or None."""
        return None if self._extra is None else self._extra.grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, TensorBase):
                raise TypeError(f"grad must be a Tensor or None, got {type(value).__name__}")
            if value is self:
                raise RuntimeError("can't assign a Variable as its own grad")
            if value._shape != self._shape:
                raise RuntimeError(
                    f"assigned grad has shape {list(value._shape)}, the tensor {list(self._shape)}"
                )
            if value._key is not self._key:
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
        dispatch_state.gradient.retain_grad(self)

    @property
    def retains_grad(self) -> bool:
        """Whether a non-leaf tensor keeps its gradient."""
        return self._extra is not None and self._extra.retains_grad

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Call `hook(grad)` when the gradient is computed; what it returns replaces the gradient."""
        return dispatch_state.gradient.register_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        """Call `hook(tensor)` after the gradient of a leaf was accumulated."""
        return dispatch_state.gradient.register_post_accumulate_grad_hook(self, hook)

    def detach(self) -> Tensor:
        """Return a tensor over the same memory that requires no grad."""
        detached: Tensor = new_tensor(self._array, self._key, self._shape)
        detached._storage = storage_of(self)
        return detached

    def detach_(self) -> Self:
        """Take the tensor out of the graph that made it; return it."""
        dispatch_state.gradient.detach_(self)
        return self

    @property
    def data(self) -> Tensor:
        """The same memory without gradient, and with a version counter of its own.

        Writing to it is not noticed by autograd; ``detach()`` is the safer way.
        """
        return new_tensor(self._array, self._key, self._shape)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, TensorBase):
            raise TypeError(f"data must be a Tensor, got {type(value).__name__}")
        if self._state and not value.dtype.is_floating_point and not value.dtype.is_complex:
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point or complex, "
                f"got {value.dtype}"
            )
        self._array, self._key, self._shape = value._array, value._key, value._shape

    @property
    def _version(self) -> int:
        """How often the memory was written to in place."""
        return version_of(self)

    def is_inference(self) -> bool:
        """Return whether the tensor was made in inference mode."""
        return self._extra is not None and self._extra.inference
