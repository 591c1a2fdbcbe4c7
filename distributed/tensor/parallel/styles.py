"""Linear layers and embeddings divided by columns or rows.

Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism", 2019.
"""

from __future__ import annotations

import fnmatch
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import zeros
from tensorplug.nn import Embedding, Linear, Module, functional as F

from ... import distributed_c10d as c10d
from ..dtensor import DTensor, distribute_tensor, sharded_parameter
from ..exchanges import redistributed, split, summed, whole
from ..placement_types import Placement, Replicate, Shard

__all__ = ["ColwiseParallel", "ParallelStyle", "RowwiseParallel", "parallelize_module"]


class ParallelStyle(ABC):
    """A way of dividing a module among the processes of a mesh of one dimension."""

    output_layouts: Any
    use_local_output: bool

    @abstractmethod
    def _apply(self, module: Module, device_mesh: Any) -> Module:
        """Divide the module, in place."""

    def _given(self, output: Tensor, mesh: Any, shape: Sequence[int]) -> Tensor:
        """Return what the module's caller gets of an output of this shape."""
        if self.use_local_output:
            return output
        return DTensor.from_local(output, mesh, [self.output_layouts], shape=shape)


class ColwiseParallel(ParallelStyle):
    """Has each process compute some of the outputs of a ``Linear``, or columns of an ``Embedding``.

    Parameters
    ----------
    input_layouts : Placement, optional
        How the input lies: whole, by default, or ``Shard(dim)``.
    output_layouts : Placement, optional
        How the output shall lie: divided along its last dimension, by default, or whole.
    use_local_output : bool
        Whether outputs are plain tensors, or else `DTensor` objects.

    Examples
    --------
    >>> parallelize_module(
    ...     mlp, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()}
    ... )  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = input_layouts or Replicate()
        self.output_layouts = output_layouts or Shard(-1)
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: Any) -> Module:
        group = device_mesh.get_group()
        if not isinstance(module, (Linear, Embedding)):
            raise NotImplementedError(
                "ColwiseParallel currently only support nn.Linear and nn.Embedding! got "
                f"{type(module).__name__}"
            )
        for name, parameter in list(module.named_parameters(recurse=False)):
            _divide(module, name, parameter, device_mesh, 0 if isinstance(module, Linear) else 1)
        if isinstance(module, Linear):
            # Of a whole input each process has the gradient of its columns.
            module.register_forward_pre_hook(
                lambda _, args: (whole(args[0], self.input_layouts, group, True), *args[1:])
            )
        columns = module.out_features if isinstance(module, Linear) else module.embedding_dim

        def lay_out(_: Module, __: Any, output: Tensor) -> Tensor:
            laid = redistributed(output, Shard(-1), self.output_layouts, group)
            return self._given(laid, device_mesh, (*output.shape[:-1], columns))

        module.register_forward_hook(lay_out)
        return module


class RowwiseParallel(ParallelStyle):
    """Has each process multiply some of the inputs of a ``Linear``, or look up some rows of an ``Embedding``.

    Parameters
    ----------
    input_layouts : Placement, optional
        How the input lies: for ``Linear`` divided along its last dimension, by default, or whole; for
        ``Embedding`` whole.
    output_layouts : Placement, optional
        How the output shall lie: whole, by default, or ``Shard(dim)``.
    use_local_output : bool
        Whether outputs are plain tensors, or else `DTensor` objects.

    Examples
    --------
    >>> parallelize_module(
    ...     mlp, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()}
    ... )  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = input_layouts
        self.output_layouts = output_layouts or Replicate()
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: Any) -> Module:
        group = device_mesh.get_group()
        layer: Any = module
        if isinstance(module, Linear):
            _divide(module, "weight", module.weight, device_mesh, 1)
            if module.bias is not None:
                _divide(module, "bias", module.bias, device_mesh, None)
            layouts = self.input_layouts or Shard(-1)

            def multiply(input: Tensor) -> Tensor:
                if layouts.is_replicate():
                    input = split(input, -1, group)
                return self._summed(F.linear(input, layer.weight), layer.bias, device_mesh)

            layer.forward = multiply
        elif isinstance(module, Embedding):
            rows = module.weight.shape[0]
            _divide(module, "weight", module.weight, device_mesh, 0)
            start, count = Shard(0).rows(rows, c10d.get_world_size(group), c10d.get_rank(group))

            def look_up(input: Tensor) -> Tensor:
                outside = (input < start) | (input >= start + count)
                if count:
                    found = F.embedding((input - start).masked_fill(outside, 0), layer.weight)
                    found = found.masked_fill(outside.unsqueeze(-1), 0)
                else:
                    found = zeros(*input.shape, layer.weight.shape[1], dtype=layer.weight.dtype)
                return self._summed(found, None, device_mesh)

            layer.forward = look_up
        else:
            raise NotImplementedError(
                "RowwiseParallel currently only support nn.Linear and nn.Embedding! got "
                f"{type(module).__name__}"
            )
        return module

    def _summed(self, output: Tensor, bias: Tensor | None, mesh: Any) -> Tensor:
        group = mesh.get_group()
        total = summed(output, group)
        if bias is not None:  # of the whole: each process has the whole of its gradient
            total = total + bias
        laid = redistributed(total, Replicate(), self.output_layouts, group)
        return self._given(laid, mesh, total.shape)


def parallelize_module(
    module: Module,
    device_mesh: Any = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,  # the parameters are taken to be alike
) -> Module:
    """Divide modules in a module among the processes of a mesh, in place.

    Parameters
    ----------
    module : Module
        The same in every process.
    device_mesh : DeviceMesh
        Of one dimension.
    parallelize_plan : ParallelStyle or dict
        How to divide the module, or those in it, by names, which may have wildcards.
    src_data_rank : int, optional
        Without effect.

    Returns
    -------
    Module
        What was given.

    Examples
    --------
    >>> plan = {"blocks.*.up": ColwiseParallel(), "blocks.*.down": RowwiseParallel()}
    >>> parallelize_module(model, mesh, plan)  # doctest: +SKIP
    """
    if device_mesh.ndim != 1:
        raise ValueError(
            f"parallelize_module needs a mesh of one dimension, got {device_mesh}: name one"
        )
    if isinstance(parallelize_plan, ParallelStyle):
        return parallelize_plan._apply(module, device_mesh)
    names = dict(module.named_modules())
    for pattern, style in (parallelize_plan or {}).items():
        found = fnmatch.filter(names, pattern)
        if not found:
            raise ValueError(f"parallelize_plan: there is no module {pattern!r}")
        for name in found:
            style._apply(names[name], device_mesh)
    return module


def _divide(module: Module, name: str, parameter: Tensor, mesh: Any, dim: int | None) -> None:
    """Have a module keep this process's part of a parameter."""
    placement: Placement = Replicate() if dim is None else Shard(dim)
    part = distribute_tensor(parameter, mesh, [placement], src_data_rank=None)
    module._parameters[name] = sharded_parameter(
        part.to_local(), mesh, [placement], parameter.shape, parameter.requires_grad
    )
