"""The graph as a drawing."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from tensorplug.core.tensor.tensor import Tensor

from .nodes import Node, OutputNode
from .views import edge_of, requires_grad

__all__ = ["Drawing", "visualize"]


class Drawing:
    """A graph in the DOT language; in a notebook it shows itself.

    Attributes
    ----------
    source : str
        The DOT text.
    """

    def __init__(self, source: str) -> None:
        self.source = source

    def __str__(self) -> str:
        return self.source

    def svg(self) -> str:
        """Return the drawing as SVG.

        Raises
        ------
        ImportError
            If the package `graphviz` is not installed.
        RuntimeError
            If its program `dot` is not.
        """
        try:
            graphviz: Any = importlib.import_module("graphviz")
        except ImportError:
            raise ImportError(
                "an SVG takes the package graphviz: pip install graphviz, and the program dot; str(drawing) "
                "is the text for any other tool"
            ) from None
        try:
            drawn: str = graphviz.Source(self.source).pipe(format="svg", encoding="utf-8")
        except graphviz.ExecutableNotFound:
            raise RuntimeError(
                "an SVG takes Graphviz's program dot, which is not on the path; install graphviz by the "
                "system's package manager"
            ) from None
        return drawn

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        try:
            return {"image/svg+xml": self.svg()}
        except (ImportError, RuntimeError):
            return {"text/plain": self.source}


def visualize(tensors: Any, params: Any = None) -> Drawing:
    r"""Return a drawing of the graph that made some tensors.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
        Where the drawing begins.
    params : Module, dict or iterable of (str, Tensor), optional
        Names of leaves; a module's parameters have theirs.

    Returns
    -------
    Drawing
        ``str(drawing)`` is DOT text, ``drawing.svg()`` a picture, if the package graphviz is installed.
        Boxes are ops with the shape of their result, ellipses are leaves; arrows go the way of the data.

    Raises
    ------
    TypeError
        If something else than tensors is given.

    Examples
    --------
    >>> import tensorplug as tp
    >>> w = tp.ones(2, requires_grad=True)
    >>> print(tp.autograd.visualize((w * 2).sum(), {"w": w}))
    digraph {
      rankdir="TB"
      node [fontname="monospace", fontsize="10"]
      n0 [label="()", shape="box", style="rounded,bold"]
      n1 [label="SumBackward0\n()", shape="box"]
      n2 [label="MulBackward0\n(2)", shape="box"]
      n3 [label="w\n(2)", shape="ellipse"]
      n1 -> n0
      n2 -> n1
      n3 -> n2
    }
    """
    roots = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    for root in roots:
        if not isinstance(root, Tensor):
            raise TypeError(f"visualize() draws the graph of tensors, got {type(root).__name__}")
    names = {id(tensor): name for name, tensor in _named(params)}
    lines: list[str] = []
    arrows: list[str] = []
    indices: dict[int, str] = {}
    kept: list[Any] = []  # so that no id is given twice

    def place(item: Any, label: str, look: str) -> tuple[str, bool]:
        known = indices.get(id(item))
        if known is not None:
            return known, False
        kept.append(item)
        name = indices[id(item)] = f"n{len(indices)}"
        lines.append(f'  {name} [label="{label}", {look}]')
        return name, True

    stack: list[tuple[Any, str]] = []
    for root in roots:
        if requires_grad(root):
            edge = edge_of(root)
            if edge is not root:
                drawn, _ = place(root, _shape(root), 'shape="box", style="rounded,bold"')
                stack.append((edge, drawn))
                continue
        place(root, _leaf_label(root, names), 'shape="ellipse"')
    while stack:
        edge, target = stack.pop()
        if isinstance(edge, OutputNode):
            edge = edge.parent
        if isinstance(edge, Node):
            name, new = place(edge, f"{_escaped(edge.name())}\\n{_size(edge.shape)}", 'shape="box"')
            if new:
                stack.extend([(e, name) for e in reversed(edge.edges) if e is not None])
        else:
            name, _ = place(edge, _leaf_label(edge, names), 'shape="ellipse"')
        arrows.append(f"  {name} -> {target}")
    head = ['  rankdir="TB"', '  node [fontname="monospace", fontsize="10"]']
    return Drawing("\n".join(["digraph {", *head, *lines, *dict.fromkeys(arrows), "}"]))


def _named(params: Any) -> Iterable[tuple[str, Any]]:
    if params is None:
        return ()
    if hasattr(params, "named_parameters"):
        return params.named_parameters()
    if isinstance(params, dict):
        return params.items()
    return params


def _leaf_label(tensor: Any, names: dict[int, str]) -> str:
    name = names.get(id(tensor))
    return f"{_escaped(name)}\\n{_shape(tensor)}" if name else _shape(tensor)


def _shape(tensor: Any) -> str:
    return _size(tensor._shape)


def _size(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
