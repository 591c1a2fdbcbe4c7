"""The dispatch state: what every call of an op reads, in one object that compiled modules read directly.

It also holds the functions that a module calls although their own module, which needs the first, is imported
later. Each is put here once, at the end of the module that defines it. Names that one module sets in another
are, besides these:

- ``keys.dispatch_state``, this object: its type needs the keys, and the keys need it.
- ``base.tensor_class``, the class of the tensors that ops return, set by the module of Tensor. Where the hot
  path is not compiled, that sets ``base.blank``, ``fast_path.TensorBase`` and two modules' ``unset_tensor``,
  too: they mean the same, and spare each op a call. Compiled, C functions and types are in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import keys
from .gradient_layer import GradientLayer

if TYPE_CHECKING:
    from ..device.runtime import DeviceRuntime
    from .choice import Choice
    from .keys import DispatchKey
    from .op import Op, Spec


class DispatchState:
    """The state of the process that calls depend on.

    Attributes
    ----------
    grad_disabled, layers_active : int
        How many threads may be in contexts that disable recording (``no_grad`` and ``inference_mode``
        blocks) or see calls (layers, preferred backends); see :mod:`.counts`. While they are zero, no
        thread-local state is looked at.
    planning : int
        How many calls of view ops, over all threads, note which views they make; see :mod:`.view_calls`.
    inference : int
        How many threads may be in ``inference_mode``; each counts among those that do not record, too.
    preferences : int
        How many threads may prefer a backend; each counts as an active layer too.
    verify : bool
        Whether the next kernel's result is checked in full: after a kernel's first call, or always. See
        :mod:`.contracts`.
    gradient : GradientLayer
        What records operations for differentiation.
    log_choice : callable or None
        Called with each choice of a kernel as it is made, where ``TENSORPLUG_LOG=dispatch`` asks for it.
    kernel_timer, transfer_timer : callable or None
        While a profile is taken: puts a timer around a kernel that goes into a table; copies between
        devices.
    through_layers, gradient_off : callable
        From :mod:`.dispatcher` and :mod:`.layers`: runs a call through this thread's layers; a context that
        records nothing.
    takes_over : callable
        From :mod:`.overrides`: whether anything of this thread wants to see a call with such arguments.
    native_kernel, preferred_kernel, make_stub : callable
        From :mod:`.resolution`: whether a plugin's kernel serves an op; the kernel that this thread
        prefers; what an unused slot of a table holds.
    build_call, build_inplace : callable
        From :mod:`.calls`: make what users call of a declared op, and its in-place variant.
    add_method, remove_method : callable
        From the module of Tensor: give it a method, unless there is one of that name; take one away.
    get_item, set_item : callable
        From the module of indexing: what ``tensor[key]`` and ``tensor[key] = value`` do.
    beside_array : callable
        From the module of operators beside arrays: what an operator gives for a tensor and a NumPy array.
    find_runtime, find_missing, find_extensions : callable
        From the discovery of plugins: the runtime of a device type; load what may bring an op, and say why
        a plugin that may is not used; load the extensions, and warn of kernels that wait in vain.
    array_namespace : callable
        From the facade: the namespace of the array API standard.
    call_batched, spec_batched, call_dual, spec_dual : callable
        From vmap and from forward mode: what they do with a call, and with canonical arguments.
    """

    __slots__ = (
        "add_method", "array_namespace", "beside_array", "build_call", "build_inplace",
        "call_batched", "call_dual", "find_extensions", "find_missing", "find_runtime", "get_item",
        "grad_disabled", "gradient", "gradient_off", "inference", "kernel_timer", "layers_active",
        "log_choice", "make_stub", "native_kernel", "planning", "preferences", "preferred_kernel",
        "remove_method", "set_item", "spec_batched", "spec_dual", "takes_over", "through_layers",
        "transfer_timer", "verify",
    )  # fmt: skip

    through_layers: Callable[[Op, tuple[Any, ...], dict[str, Any]], Any]
    gradient_off: Callable[[], Any]
    takes_over: Callable[[tuple[Any, ...], dict[str, Any] | None], bool]
    native_kernel: Callable[[Op, DispatchKey], bool]
    preferred_kernel: Callable[[Op, DispatchKey], Callable[..., Any]]
    make_stub: Callable[[int, DispatchKey], Callable[..., Any]]
    build_call: Callable[[Op], Callable[..., Any]]
    build_inplace: Callable[[Op, str], Callable[..., Any]]
    add_method: Callable[[str, Callable[..., Any]], bool]
    remove_method: Callable[[str, Callable[..., Any]], None]
    beside_array: Callable[[Op, Any, Any], Any]
    get_item: Callable[[Any, Any], Any]
    set_item: Callable[[Any, Any, Any], None]
    find_runtime: Callable[[str], DeviceRuntime]
    find_missing: Callable[[str], str]
    find_extensions: Callable[[], None]
    array_namespace: Callable[[str | None], Any]
    call_batched: Callable[[Op, tuple[Any, ...], dict[str, Any]], Any]
    spec_batched: Callable[[Op, Spec], Any]
    call_dual: Callable[[Op, tuple[Any, ...], dict[str, Any]], Any]
    spec_dual: Callable[[Op, Spec], Any]

    def __init__(self) -> None:
        self.grad_disabled = 0
        self.inference = 0
        self.layers_active = 0
        self.planning = 0
        self.preferences = 0
        self.verify = False
        self.gradient: GradientLayer = GradientLayer()
        self.log_choice: Callable[[Choice], None] | None = None
        self.kernel_timer: (
            Callable[[Choice, DispatchKey, Callable[..., Any]], Callable[..., Any]] | None
        ) = None
        self.transfer_timer: Callable[..., Any] | None = None

    def set_gradient(self, layer: GradientLayer) -> None:
        """Make `layer` the one that ops on tensors that require grad go through."""
        self.gradient = layer

    def count_layers(self, change: int) -> None:
        """Count a context that sees calls in (1) or out (-1)."""
        self.layers_active += change

    def count_planning(self, change: int) -> None:
        """Count a call that notes views in (1) or out (-1)."""
        self.planning += change


#: The only one.
dispatch_state = DispatchState()
keys.dispatch_state = dispatch_state
