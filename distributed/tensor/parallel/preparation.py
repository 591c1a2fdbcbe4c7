"""Modules whose inputs and outputs come in other layouts, and norms over a divided sequence."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any

from tensorplug.core import Tensor
from tensorplug.nn import Module

from ..exchanges import copied, redistributed
from ..placement_types import Placement, Shard
from .styles import ParallelStyle

__all__ = [
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "SequenceParallel",
]

_Layouts = Placement | None
_Given = _Layouts | Sequence[_Layouts]


def _sequence(layouts: _Given) -> tuple[_Layouts, ...]:
    if layouts is None:
        return ()
    return (layouts,) if isinstance(layouts, Placement) else tuple(layouts)


def _check(given: Sized, wanted: Sized, what: str) -> None:
    if len(given) != len(wanted):
        raise ValueError(f"{what} and desired_{what} should have same length!")


def _brought(value: Any, given: _Layouts, wanted: _Layouts, group: Any) -> Any:
    if not isinstance(value, Tensor) or given is None or wanted is None:
        return value
    return redistributed(value, given, wanted, group)


class PrepareModuleInput(ParallelStyle):
    """Brings the inputs of a module to the layouts that it needs.

    Parameters
    ----------
    input_layouts, desired_input_layouts : Placement or tuple, optional
        How each positional input lies, and how it shall lie; None leaves it as it is.
    input_kwarg_layouts, desired_input_kwarg_layouts : dict, optional
        The same for inputs by name.
    use_local_output : bool
        Inputs are plain tensors in any case.

    Examples
    --------
    >>> from tensorplug.distributed.tensor import Replicate, Shard
    >>> plan = {
    ...     "attention": PrepareModuleInput(
    ...         input_layouts=Shard(1), desired_input_layouts=Replicate()
    ...     )
    ... }
    >>> parallelize_module(block, mesh, plan)  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        input_layouts: _Given = None,
        desired_input_layouts: _Given = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts = _sequence(input_layouts)
        self.desired_input_layouts = _sequence(desired_input_layouts)
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        _check(self.input_layouts, self.desired_input_layouts, "input_layouts")
        _check(self.input_kwarg_layouts, self.desired_input_kwarg_layouts, "input_kwarg_layouts")

    def _apply(self, module: Module, device_mesh: Any) -> Module:
        group = device_mesh.get_group()

        def prepare(_: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if self.input_layouts and len(args) != len(self.input_layouts):
                raise ValueError("module inputs and input_layouts should have same length!")
            brought = [
                _brought(value, given, wanted, group)
                for value, given, wanted in zip(
                    args, self.input_layouts, self.desired_input_layouts, strict=False
                )
            ]
            named = {
                name: _brought(
                    value,
                    self.input_kwarg_layouts.get(name),
                    self.desired_input_kwarg_layouts.get(name),
                    group,
                )
                for name, value in kwargs.items()
            }
            return tuple(brought) if self.input_layouts else args, named

        module.register_forward_pre_hook(prepare, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Brings the outputs of a module to the layouts that are asked for.

    Parameters
    ----------
    output_layouts, desired_output_layouts : Placement or tuple
        How each output lies, and how it shall lie; None leaves it as it is.
    use_local_output : bool
        Outputs are plain tensors in any case.

    Examples
    --------
    >>> from tensorplug.distributed.tensor import Replicate, Shard
    >>> plan = {
    ...     "head": PrepareModuleOutput(
    ...         output_layouts=Shard(-1), desired_output_layouts=Replicate()
    ...     )
    ... }
    >>> parallelize_module(model, mesh, plan)  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        output_layouts: _Given,
        desired_output_layouts: _Given,
        use_local_output: bool = True,
    ) -> None:
        self.output_layouts = _sequence(output_layouts)
        self.desired_output_layouts = _sequence(desired_output_layouts)
        self.use_local_output = use_local_output
        _check(self.output_layouts, self.desired_output_layouts, "output_layouts")

    def _apply(self, module: Module, device_mesh: Any) -> Module:
        group = device_mesh.get_group()

        def prepare(_: Module, __: Any, output: Any) -> Any:
            outputs = output if isinstance(output, tuple) else (output,)
            if len(outputs) != len(self.output_layouts):
                raise ValueError("module outputs and output_layouts should have same length!")
            brought = tuple(
                [
                    _brought(value, given, wanted, group)
                    for value, given, wanted in zip(
                        outputs, self.output_layouts, self.desired_output_layouts, strict=True
                    )
                ]
            )
            return brought if isinstance(output, tuple) else brought[0]

        module.register_forward_hook(prepare)
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """Brings both the inputs and the outputs of a module to other layouts.

    Parameters are those of :class:`PrepareModuleInput` and :class:`PrepareModuleOutput`.

    Examples
    --------
    >>> from tensorplug.distributed.tensor import Replicate, Shard
    >>> style = PrepareModuleInputOutput(
    ...     input_layouts=Shard(1),
    ...     desired_input_layouts=Replicate(),
    ...     output_layouts=Replicate(),
    ...     desired_output_layouts=Shard(1),
    ... )
    """

    def __init__(
        self,
        *,
        input_layouts: _Given = None,
        desired_input_layouts: _Given = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: _Given,
        desired_output_layouts: _Given,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: Module, device_mesh: Any) -> Module:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)


class SequenceParallel(ParallelStyle):
    """Has each process compute a ``LayerNorm``, ``RMSNorm`` or ``Dropout`` for its part of the sequence.

    Parameters stay whole in each process; their gradients are summed over the processes.

    Parameters
    ----------
    sequence_dim : int
        The dimension that is divided, by torch's default the second.
    use_local_output : bool
        Outputs are plain tensors in any case.

    Notes
    -----
    Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022.

    Examples
    --------
    >>> from tensorplug.distributed.tensor import Shard
    >>> from tensorplug.distributed.tensor.parallel import ColwiseParallel
    >>> plan = {"norm": SequenceParallel(), "up": ColwiseParallel(input_layouts=Shard(1))}
    >>> parallelize_module(block, mesh, plan)  # doctest: +SKIP
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = Shard(sequence_dim)
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: Any) -> Module:
        group = device_mesh.get_group()
        own = dict(module.named_parameters(recurse=False))

        # The parameters as a call sees them: their gradients are summed on the way back.
        def summed(_: Module, __: Any) -> None:
            for name, parameter in own.items():
                module.__dict__[name] = copied(parameter, group)

        def restored(_: Module, __: Any, ___: Any) -> None:
            for name in own:
                module.__dict__.pop(name, None)

        if own:
            module.register_forward_pre_hook(summed)
            module.register_forward_hook(restored, always_call=True)
        return module
