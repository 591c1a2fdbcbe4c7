"""The plugin object that the entry point names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tensorplug.plugin import (
    Advice,
    DeferredKernels,
    FusedCall,
    Fuser,
    FusionProgram,
    Kernel,
    KernelTable,
    Region,
    RuntimeExtension,
    hookimpl,
)

from . import allocator, cpu_features, library
from ._dtypes import PRIORITY
from .kernels import (
    comparison,
    complex,
    copying,
    creation,
    cumulative,
    distances,
    fft,
    indexing,
    joining,
    linalg,
    masking,
    matmul,
    norms,
    numeric,
    pointwise,
    pointwise_fused,
    random,
    rearranging,
    reductions,
    softmax,
    sorting,
    special,
    statistics,
    strided,
    triangles,
)
from .pointwise_regions import PointwiseFuser
from .rearranging_regions import ViewFuser

FAMILIES = (
    comparison,
    complex,
    copying,
    creation,
    cumulative,
    distances,
    fft,
    indexing,
    joining,
    linalg,
    masking,
    matmul,
    norms,
    numeric,
    pointwise,
    pointwise_fused,
    random,
    rearranging,
    reductions,
    softmax,
    sorting,
    special,
    statistics,
    strided,
    triangles,
)


def _table(families: Iterable[Any]) -> KernelTable:
    table = KernelTable("cpu", PRIORITY)
    for family in families:
        family.build(table)
    return table


def _of_networks() -> KernelTable:
    from .kernels import (
        activation,
        attention,
        convolution,
        dropout,
        embedding,
        linear,
        losses,
        normalization,
        padding,
        pooling,
        rnn,
        upsampling,
        vision,
    )

    return _table(
        (
            activation,
            attention,
            convolution,
            dropout,
            embedding,
            linear,
            losses,
            normalization,
            padding,
            pooling,
            rnn,
            upsampling,
            vision,
        )
    )


def _of_optimizers() -> KernelTable:
    from .kernels import optimizers

    return _table((optimizers,))


class _Later(Fuser):
    """A fuser whose module is imported when a program is compiled."""

    device_type = "cpu"

    def __init__(self, name: str, priority: int) -> None:
        self.name = name
        self.priority = priority
        self.channels_last = name == "convolutions"

    def _fuser(self) -> Fuser:
        if self.name == "linear":
            from .linear_regions import LinearFuser

            return LinearFuser()
        if self.name == "batch_norm":
            from .normalization_regions import NormalizationFuser

            return NormalizationFuser()
        if self.name == "recurrent":
            from .rnn_regions import RecurrentFuser

            return RecurrentFuser()
        if self.name == "winograd":
            from .winograd_regions import WinogradFuser

            return WinogradFuser()
        from .convolution_regions import ConvolutionFuser

        return ConvolutionFuser()

    def regions(self, program: FusionProgram) -> Iterable[Region]:
        """Return what the fuser would take."""
        return self._fuser().regions(program)

    def compile(
        self,
        program: FusionProgram,
        region: Region,
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> FusedCall | None:
        """Return what the fuser makes of it."""
        return self._fuser().compile(program, region, inputs, outputs)


class CompiledRuntime(RuntimeExtension):
    """The threads of the compiled kernels, and the memory of their results."""

    type = "cpu"
    namespace: Mapping[str, Any] = MappingProxyType(
        {"set_memory_limit": allocator.set_memory_limit, "simd_level": cpu_features.level}
    )

    def set_num_threads(self, number: int) -> None:
        """Limit OpenMP's threads."""
        cpu_features.set_num_threads(number)

    def memory_stats(self, index: int) -> Mapping[str, int]:
        """Return the allocator's figures."""
        return allocator.memory_stats()

    def reset_peak_memory_stats(self, index: int) -> None:
        """Make the peak figures start again from the present."""
        allocator.reset_peak_memory_stats()

    def empty_cache(self) -> None:
        """Give the allocator's cached blocks back to the system."""
        allocator.empty_cache()


class CythonPlugin:
    """Registers the kernels, and what they bring to the runtime of "cpu"."""

    name = "cpu_cython"

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel | DeferredKernels]:
        """Return the kernels."""
        return [
            *_table(FAMILIES),
            DeferredKernels("nn", _of_networks),
            DeferredKernels("optim", _of_optimizers),
        ]

    @hookimpl
    def tensorplug_fusers(self) -> Iterable[Fuser]:
        """Return what runs parts of compiled programs."""
        always = [
            PointwiseFuser(),
            ViewFuser(),
            _Later("batch_norm", 6),
            _Later("recurrent", 4),
        ]
        if library.onednn is None:
            return always
        return [
            *always,
            _Later("convolutions", 10),
            _Later("winograd", 8),
            _Later("linear", 5),
        ]

    @hookimpl
    def tensorplug_runtime_extensions(self) -> Iterable[RuntimeExtension]:
        """Return threads and allocator."""
        return [CompiledRuntime()]

    @hookimpl
    def tensorplug_advice(self) -> Iterable[Advice]:
        """Return whether oneDNN is there, and the level of the kernels."""
        return [
            Advice("oneDNN", "in use")
            if library.onednn is not None
            else Advice("oneDNN", "missing: products and convolutions are slower", library.INSTALL),
            Advice("SIMD level", cpu_features.level()),
        ]


plugin = CythonPlugin()
