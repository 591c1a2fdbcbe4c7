"""Counts floating-point operations of products and convolutions, as ``torch.utils.flop_counter``."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from math import prod
from typing import Any, TypeVar

from tensorplug.autograd.engine.backward_callbacks import running
from tensorplug.core import Tensor
from tensorplug.core.contexts import OwnContext, Steps, steps_of
from tensorplug.core.errors import warn
from tensorplug.utils._python_dispatch import TorchDispatchMode
from tensorplug.utils._pytree import tree_map
from tensorplug.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

F = TypeVar("F", bound=Callable[..., Any])

#: For each op, by its packet, what tells the operations of a call.
flop_registry: dict[Any, Callable[..., int]] = {}


def _shape(value: Any) -> Any:
    return value.shape if isinstance(value, Tensor) else value


def _of_shapes(formula: Callable[..., int]) -> Callable[..., int]:
    @functools.wraps(formula)
    def count(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out = tree_map(_shape, (args, kwargs, out_val))
        return formula(*args, out_shape=out, **kwargs)

    return count


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[F], F]:
    """Have calls of ops counted by a formula.

    Parameters
    ----------
    targets : op packet, or list of them
        Such as ``tp.ops.mylib.foo``.
    get_raw : bool
        Whether the formula gets tensors, and the result as ``out_val``, instead of shapes and ``out_shape``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> @register_flop_formula(tp.ops.aten.cumsum)
    ... def of_cumsum(shape, dim, *, out_shape, **kwargs):
    ...     return shape.numel()
    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = tp.ones(3, 4).cumsum(0)
    >>> counter.get_total_flops()
    12
    >>> _ = flop_registry.pop(tp.ops.aten.cumsum)
    """

    def register(formula: F) -> F:
        count = formula if get_raw else _of_shapes(formula)
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not hasattr(target, "overloads"):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. "
                    f"torch.ops.mylib.foo), got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = count
        return formula

    return register


# --- formulas, in the multiplications and additions that torch counts ---


def _mm(a: Any, b: Any, **_: Any) -> int:
    return int(a[0] * b[1] * 2 * a[1])


def _bmm(a: Any, b: Any, **_: Any) -> int:
    return int(a[0] * a[1] * b[2] * 2 * a[2])


def _convolution(
    x: Any, weight: Any, out: Any, transposed: bool
) -> int:  # each window meets the whole weight
    return prod((x if transposed else out)[2:]) * prod(weight) * x[0] * 2


def _flipped(shape: Any) -> tuple[int, ...]:
    return (shape[1], shape[0], *shape[2:])


def _of_convolution(
    x: Any,
    weight: Any,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    *_: Any,
    out_shape: Any,
    **__: Any,
) -> int:
    return _convolution(x, weight, out_shape, transposed)


def _of_input(gradient: Any, weight: Any, *_: Any, out_shape: Any, **__: Any) -> int:
    return _convolution(gradient, weight, out_shape, True)


def _of_weight(x: Any, gradient: Any, *_: Any, out_shape: Any, **__: Any) -> int:
    return _convolution(_flipped(x), _flipped(gradient), _flipped(out_shape), False)


def _attention(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    heads, length, seen = prod(query[:-2]), query[-2], key[-2]
    return _bmm((heads, length, query[-1]), (heads, query[-1], seen)) + _bmm(
        (heads, length, seen), (heads, seen, value[-1])
    )


#: Ops of ours that are parts of one of ATen's, under whose name they are counted in backward and elsewhere.
_PARTS = {
    "convolution": ("convolution_backward", "convolution"),
    "convolution_input": ("convolution_backward", "convolution"),
    "convolution_weight": ("convolution_backward", "convolution_backward"),
}


def _register_ours() -> None:
    from tensorplug import ops

    formulas: dict[str, Callable[..., int]] = {
        "mm": _mm, "bmm": _bmm, "addmm": lambda _, a, b, **__: _mm(a, b),
        "baddbmm": lambda _, a, b, **__: _bmm(a, b), "convolution": _of_convolution,
        "_scaled_dot_product_flash_attention": _attention,
        "_scaled_dot_product_efficient_attention": _attention,
    }  # fmt: skip
    for name, formula in formulas.items():
        register_flop_formula(getattr(ops.aten, name))(formula)


_register_ours()
_PART_FORMULAS = {
    "convolution_input": _of_shapes(_of_input),
    "convolution_weight": _of_shapes(_of_weight),
}


class FlopCounterMode(OwnContext):
    """Counts the operations of products and convolutions in a ``with`` block, forward and backward.

    Parameters
    ----------
    mods : Module or list of Module, optional
        Not needed: modules are found as they run.
    depth : int
        To which depth of modules the table goes.
    display : bool
        Whether to print the table at the end.
    custom_mapping : dict, optional
        Formulas for further ops, by their packets.

    Examples
    --------
    >>> import tensorplug as tp
    >>> with FlopCounterMode(display=False) as counter:
    ...     tp.nn.Linear(3, 4)(tp.ones(2, 3)).sum().backward()
    >>> counter.get_total_flops()
    96
    >>> counter.get_flop_counts()["Global"]
    {<OpOverloadPacket(op='aten.addmm')>: 48, <OpOverloadPacket(op='aten.mm')>: 48}
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        if mods is not None:
            warn("mods argument is not needed anymore, you can stop passing it", UserWarning)
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth = depth
        self.display = display
        own = {
            packet: formula if getattr(formula, "_get_raw", False) else _of_shapes(formula)
            for packet, formula in (custom_mapping or {}).items()
        }
        self.flop_registry = {**flop_registry, **own}
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self) -> int:
        """Return the operations of all modules together."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return the operations by op, for each module's path and for ``"Global"``."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return the counts as a table of modules and ops."""
        depth = self.depth if depth is None else depth
        whole = self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        modules = sorted(name for name in self.flop_counts if name != "Global")
        covered = any(sum(self.flop_counts[name].values()) >= whole for name in modules)
        for name in [*([] if covered and whole else ["Global"]), *modules]:
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            indent = " " * max(level - covered, 0)
            counts = self.flop_counts[name]
            lines: Iterable[tuple[Any, int]] = [(name, sum(counts.values()))]
            for label, number in [*lines, *((f" - {op}", count) for op, count in counts.items())]:
                rows.append(
                    (indent + label, _short(number, whole), f"{_share(number, whole):.2f}%")
                )
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        texts = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
        return "\n".join([texts[0], "  ".join("-" * width for width in widths), *texts[1:]])

    def _steps(self) -> tuple[Steps, Steps]:
        self.flop_counts.clear()
        tracked, untracked = self.mod_tracker._steps()
        counted, uncounted = steps_of(_Counting(self))
        shown = [self._show] if self.display else []
        return [*tracked, *counted], [*uncounted, *untracked, *shown]

    def _show(self) -> None:
        print(self.get_table())  # noqa: T201

    def _count(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        packet = func.overloadpacket
        name = packet.__name__
        formula = _PART_FORMULAS.get(name) or self.flop_registry.get(packet)
        if formula is None:
            return
        if name in _PARTS:
            from tensorplug import ops

            packet = getattr(ops.aten, _PARTS[name][running.targets is None])
        number = formula(*args, **kwargs, out_val=out)
        for module in self.mod_tracker.parents:
            self.flop_counts[module][packet] += number


def _share(number: int, whole: int) -> float:
    return 100 * number / whole if whole else 0.0


def _short(number: int, whole: int) -> str:
    power = max(0, (len(str(whole)) - 1) // 3)
    return f"{number / 1000**power:.3f}{' KMBTPEZ'[power]}" if power else str(number)


#: Composites whose products a kernel may hide: they are counted step by step.
_HOLDING = frozenset(
    [
        "bilinear",
        "cdist",
        "euclidean_dist",
        "gru",
        "gru_layer",
        "gru_layer_backward",
        "lstm",
        "lstm_layer",
        "lstm_layer_backward",
        "multi_head_attention_forward",
        "rnn_relu",
        "rnn_tanh",
        "gru_cell",
        "lstm_cell",
        "rnn_relu_cell",
        "rnn_tanh_cell",
        "scaled_dot_product_attention",
        "addbmm",
        "addmv",
        "linalg_matrix_power",
        "matrix_power",
    ]
)


class _Counting(TorchDispatchMode):
    def __init__(self, counter: FlopCounterMode) -> None:
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type[Any]],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name in _HOLDING and func.overloadpacket not in self.counter.flop_registry:
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        result = func(*args, **kwargs)
        self.counter._count(func, args, kwargs, result)
        return result
