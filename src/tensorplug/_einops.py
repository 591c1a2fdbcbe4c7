"""What makes einops take tensors of tensorplug: a backend of its own, once both are imported.

einops finds backends among the subclasses of a class of its own, so one has to be made after einops is
imported; a finder waits for that. ``einops.rearrange(x, "b c h w -> b (c h w)")`` then works as it does
on torch's tensors.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_BACKENDS = "einops._backends"


def install() -> None:
    """Give einops the backend now if it is imported, else as soon as it is."""
    backends = sys.modules.get(_BACKENDS)
    if backends is not None:
        _define(backends)
    else:
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds einops' module of backends as others would, and adds ours when it has run.

    It is a ``MetaPathFinder`` by what it does: :mod:`importlib.abc` would import twenty modules.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _BACKENDS:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            run = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                _define(module)

            loader.exec_module = exec_module
        return spec


def _define(backends: Any) -> None:
    class TensorplugBackend(backends.AbstractBackend):  # type: ignore[misc]
        """Tensors of tensorplug, by the methods that they share with torch's."""

        framework_name = "tensorplug"

        def __init__(self) -> None:
            import tensorplug

            self.tp = tensorplug

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, self.tp.Tensor)

        def from_numpy(self, x: Any) -> Any:
            return self.tp.from_numpy(x)

        def to_numpy(self, x: Any) -> Any:
            return x.detach().cpu().numpy()

        def arange(self, start: int, stop: int) -> Any:
            return self.tp.arange(start, stop)

        def shape(self, x: Any) -> tuple[int, ...]:
            return tuple(x.shape)

        def transpose(self, x: Any, axes: Any) -> Any:
            return x.permute(axes)

        def reduce(self, x: Any, operation: str, axes: Any) -> Any:
            axes = tuple(axes)
            if operation == "prod":  # one dimension at a time
                for axis in sorted(axes, reverse=True):
                    x = x.prod(dim=axis)
                return x
            return getattr(x, {"min": "amin", "max": "amax"}.get(operation, operation))(dim=axes)

        def stack_on_zeroth_dimension(self, tensors: Any) -> Any:
            return self.tp.stack(tensors)

        def add_axis(self, x: Any, new_position: int) -> Any:
            return x.unsqueeze(new_position)

        def add_axes(self, x: Any, n_axes: int, pos2len: Any) -> Any:
            sizes = [-1] * n_axes
            for position, length in pos2len.items():
                x = x.unsqueeze(position)
                sizes[position] = length
            return x.expand(sizes)

        def tile(self, x: Any, repeats: Any) -> Any:
            return x.repeat(repeats)

        def concat(self, tensors: Any, axis: int) -> Any:
            return self.tp.cat(tensors, dim=axis)

        def is_float_type(self, x: Any) -> bool:
            return x.is_floating_point()

        def einsum(self, pattern: str, *x: Any) -> Any:
            return self.tp.einsum(pattern, *x)

    backends.TensorplugBackend = TensorplugBackend  # a class keeps no references to its subclasses
