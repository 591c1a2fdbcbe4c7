"""The hooks of the plugin API, version 1: one per thing that can be registered.

A plugin is an object (a module, or an instance of a class) with a ``name`` and some of the
functions below, marked with ``tensorplug.plugin.hookimpl``. They run once, when the plugin is
registered, in the order in which they stand here, so that each may refer to what came before;
``tensorplug_records`` runs only under test, ``tensorplug_advice`` for ``tensorplug doctor``. Nothing
here is called on the way of an op. If anything that they return is refused, nothing of the plugin is
kept.

Each returns an iterable, which may be empty or a generator. A later version of the API may add
hooks to this list; a plugin without them stays valid. A hook that changes in what it takes or
returns makes a new version, and with it a new entry-point group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pluggy

if TYPE_CHECKING:
    from ..device.runtime import DeviceRuntime, RuntimeExtension
    from ..dispatch.autocast_policies import AutocastPolicy
    from ..dispatch.kernel_registry import Kernel
    from ..dispatch.layers import Layer
    from ..dispatch.op_registry import Op
    from .fusers import Fuser
    from .installation import Advice
    from .op_rules import OpItem
    from .process_groups import ProcessGroupBackend

PROJECT = "tensorplug"
API_VERSION = 1
GROUP_PREFIX = "tensorplug.v"
GROUP = f"{GROUP_PREFIX}{API_VERSION}"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def tensorplug_devices() -> Iterable[DeviceRuntime]:  # type: ignore[empty-body]
    """Return the runtimes of the device types that this plugin adds.

    Returns
    -------
    iterable of DeviceRuntime
        One per device type. A type has one runtime; further plugins may add kernels to it.

    Examples
    --------
    ::

        @hookimpl
        def tensorplug_devices(self):
            return [VaultRuntime()]
    """


@hookspec
def tensorplug_ops() -> Iterable[Op | Callable[..., Any]]:  # type: ignore[empty-body]
    """Return the ops that this plugin adds.

    Returns
    -------
    iterable of Op or callable
        The functions that ``primitive``, ``primitive_tuple`` and ``composite`` decorated. An op's
        name begins with the package's, ``name="acme.smooth"``, so that those of two packages cannot
        meet.

    Examples
    --------
    ::

        @hookimpl
        def tensorplug_ops(self):
            return [smooth]
    """


@hookspec
def tensorplug_kernels() -> Iterable[Kernel]:  # type: ignore[empty-body]
    """Return kernels, for any ops and device types, also those of other plugins.

    Returns
    -------
    iterable of Kernel or DeferredKernels
        A ``KernelTable`` is one. Two kernels for the same op, device type and dtype need different
        priorities; the higher one wins. A kernel for an op that is not registered waits until it is;
        ``DeferredKernels("acme", build)`` calls `build` for kernels when the plugin "acme" is registered.

    Examples
    --------
    ::

        @hookimpl
        def tensorplug_kernels(self):
            return [
                Kernel(
                    "exp", "cpu", my_exp, dtypes=frozenset([dtype_named("float32")]), priority=10
                )
            ]
    """


@hookspec
def tensorplug_derivatives() -> Iterable[OpItem | Sequence[OpItem]]:  # type: ignore[empty-body]
    """Return the derivatives of ops, also those of other plugins.

    Returns
    -------
    iterable of derivatives
        What ``derivative()`` and ``not_differentiable()`` made. Of several for one op the highest priority
        serves. An op with neither is an error when it meets a tensor that requires grad.

    Examples
    --------
    ::

        @hookimpl
        def tensorplug_derivatives(self):
            return [derivative("acme.smooth", input=lambda g, input: g * input)]
    """


@hookspec
def tensorplug_tangents() -> Iterable[OpItem | Sequence[OpItem]]:  # type: ignore[empty-body]
    """Return the forward-mode rules of ops, also those of other plugins.

    Returns
    -------
    iterable of tangents
        What ``tangent()``, ``linear()`` and ``holomorphic()`` made. Of several for one op the highest
        priority serves. An op without one has its derivative differentiated once more.

    Examples
    --------
    ::

        @hookimpl
        def tensorplug_tangents(self):
            return [linear("acme.smooth", "input")]
    """


@hookspec
def tensorplug_vmap_rules() -> Iterable[OpItem | Sequence[OpItem]]:  # type: ignore[empty-body]
    """Return the batching rules of ops, also those of other plugins.

    Returns
    -------
    iterable of vmap rules
        What ``vmap_rule()`` and ``first_dim_is_batch()`` made. Of several for one op the highest priority
        serves. A composite without one is taken apart, a primitive called once per sample.

    Examples
    --------
    ::

        @hookimpl
        def tensorplug_vmap_rules(self):
            return [vmap_rule("acme.smooth", lambda info, in_dims, x: (smooth(x), in_dims[0]))]
    """


@hookspec
def tensorplug_layers() -> Iterable[Layer]:  # type: ignore[empty-body]
    """Return layers, which see the calls of ops while they are active.

    Returns
    -------
    iterable of Layer
        They are found by name in ``tp.plugins.layers()``, and used with ``with layer.active():``.

    Examples
    --------
    ::

        @hookimpl
        def tensorplug_layers(self):
            return [CountCalls()]
    """


class OpSamples(Protocol):
    """What ``tensorplug.testing.OpRecord`` makes; core knows no more of it."""

    op: str


@hookspec
def tensorplug_records() -> Iterable[OpSamples]:  # type: ignore[empty-body]
    """Return samples and references of the ops that this plugin adds, for the conformance suite.

    It is called by the tests, not at registration, so that ``tensorplug.testing`` is imported only
    there: import it within the function.

    Returns
    -------
    iterable of OpRecord
        One for each op; the suite then tests them on every device.

    Examples
    --------
    ::

        @hookimpl
        def tensorplug_records(self):
            from .samples import RECORDS

            return RECORDS
    """


@hookspec
def tensorplug_advice() -> Iterable[Advice]:  # type: ignore[empty-body]
    """Return what ``tensorplug doctor`` should say of this plugin; it is called by that command alone.

    Returns
    -------
    iterable of Advice
        Such as a library that would make it faster, and what installs that.

    Examples
    --------
    ::

        @hookimpl
        def tensorplug_advice(self):
            return [Advice("BLAS", "missing", "pip install acme-blas")]
    """


@hookspec
def tensorplug_autocast() -> Iterable[AutocastPolicy]:  # type: ignore[empty-body]
    """Return what autocast does with the arguments of ops, also those of other plugins.

    Returns
    -------
    iterable of AutocastPolicy
        One per op and device type; an op without one gets its arguments as they are, and the ops that
        its body calls follow theirs.

    Examples
    --------
    ::

        @hookimpl
        def tensorplug_autocast(self):
            return [AutocastPolicy("acme.smooth", "float32")]
    """


@hookspec
def tensorplug_runtime_extensions() -> Iterable[RuntimeExtension]:  # type: ignore[empty-body]
    """Return additions to the runtimes of devices that are other plugins': an allocator, threads.

    Returns
    -------
    iterable of RuntimeExtension
        A device may have any number of them.

    Examples
    --------
    ::

        @hookimpl
        def tensorplug_runtime_extensions(self):
            return [CachingMemory()]
    """


@hookspec
def tensorplug_process_groups() -> Iterable[ProcessGroupBackend]:  # type: ignore[empty-body]
    """Return backends of process groups, by which processes exchange arrays.

    Returns
    -------
    iterable of ProcessGroupBackend
        Two that have a name and a device type in common need different priorities; the higher one serves.

    Examples
    --------
    ::

        @hookimpl
        def tensorplug_process_groups(self):
            return [AcmeBackend()]
    """


@hookspec
def tensorplug_fusers() -> Iterable[Fuser]:  # type: ignore[empty-body]
    """Return fusers, which run parts of compiled programs in one call each.

    Returns
    -------
    iterable of Fuser
        Two for one device type need different priorities; the higher one is asked first.

    Examples
    --------
    ::

        @hookimpl
        def tensorplug_fusers(self):
            return [AcmeFuser()]
    """
