"""Writing models: a program is captured, and each op of its graph becomes nodes of ONNX."""

from __future__ import annotations

import itertools
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor, ops
from tensorplug.core.contexts import Block, Steps
from tensorplug.core.tensor.host import host_array
from tensorplug.graph import Graph, Node, Uncapturable, Value, capture
from tensorplug.graph.data_sizes import DataSizes, resized
from tensorplug.graph.nodes import call, known_op, map_values, values_in
from tensorplug.nn import Module

from .errors import ONNXError, UnsupportedOperatorError
from .lowering import LOWERINGS
from .lowering.complex_numbers import give_parts, is_complex, lower_complex
from .lowering.reasons import REASONS
from .lowering.table import lower
from .package import onnx_package
from .values import PARAMETERS, TYPE_NUMBERS
from .varying import mapped, merged, tensors_of, varying
from .writing import Inexpressible, Size, Writer

__all__ = ["export", "save"]

#: What one protobuf message holds: beyond it weights go into a file of their own.
LIMIT = 2**31 - 2**20
#: Ops that read data in order to refuse it, and for nothing else: a model does without the check.
CHECKING = frozenset(
    ("binary_cross_entropy", "cov", "embedding_bag", "gaussian_nll_loss", "nanquantile", "quantile")
)
#: How often the program is captured where sizes vary: as many points as tell what a size depends on.
_CAPTURES = 3


def export(
    model: Callable[..., Any],
    args: Any = (),
    f: str | os.PathLike[str] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int = 18,
    dynamic_shapes: Any = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    external_data: bool | None = None,
) -> Any:
    """Write a module or function as an ONNX model.

    Parameters
    ----------
    model
        A module, which is exported in evaluation mode, or a function of tensors.
    args
        What it is called with: a tensor, or a tuple of arguments. Tensors become the model's inputs; anything
        else is as it is here in all runs.
    f
        Where to write the file. Weights of more than 2 GB go into a file of the same name with ``.data``.
    kwargs
        Further arguments by name.
    input_names, output_names
        Names in the file, by default those of the parameters, and ``output``, ``output_1`` …
    opset_version
        18 or newer.
    dynamic_shapes
        Which sizes vary from run to run: for each argument a dict from dimensions to the name of a size, in a
        tuple, or in a dict by the parameter's name. Equal names are equal sizes.
    dynamic_axes
        The same in the older form: for each name of an input a dict from dimensions to names, or a list of
        dimensions.
    external_data
        Whether weights go into a file of their own; by default where they have to.

    Returns
    -------
    onnx.ModelProto
        The model that was written.

    Raises
    ------
    UnsupportedOperatorError
        ONNX cannot say what some ops do; the message has all of them, with the reason and the program's line.
    tensorplug.graph.Uncapturable
        The program reads data of its tensors.

    Examples
    --------
    >>> import tensorplug as tp
    >>> model = tp.nn.Sequential(tp.nn.Linear(2, 3), tp.nn.ReLU())
    >>> sizes = ({0: "batch"},)
    >>> proto = tp.onnx.export(model, (tp.ones(1, 2),), dynamic_shapes=sizes)
    >>> [node.op_type for node in proto.graph.node]
    ['Gemm', 'Relu']
    >>> tp.onnx.load(proto)(tp.ones(5, 2)).shape
    Size([5, 3])
    """
    onnx = onnx_package()
    newest = onnx.defs.onnx_opset_version()
    if not 18 <= opset_version <= newest:
        raise ValueError(
            f"opset_version is {opset_version}; it can be 18 to {newest} (of onnx {onnx.__version__})"
        )
    args = args if isinstance(args, tuple) else (args,)
    given = dict(kwargs or {})
    with _evaluated(model), no_grad():
        of_data, whole = DataSizes(), LOWERINGS.keys() | CHECKING
        first = capture(
            model,
            *args,
            kwargs=given,
            level=lambda op, *_: op.name in whole,
            data_sizes=of_data,
        )
        names = _names([value.name for value in first.arguments], input_names, "input")
        sizes = varying(first, names, args, given, dynamic_shapes, dynamic_axes)
        made = _Export(model, args, given, sizes, opset_version, first, of_data)
        proto = made.write(names, output_names)
    data = proto.SerializeToString() if proto.ByteSize() < LIMIT else None  # both take long
    if data is not None:
        onnx.checker.check_model(data)
    if f is not None:
        save(proto, f, external_data, data)
    return proto


def _evaluated(model: Any) -> Block:
    """Put a module into evaluation mode for a while."""

    def steps() -> tuple[Steps, Steps]:
        modules = list(model.modules()) if isinstance(model, Module) else []
        return (
            [partial(vars(module).update, training=False) for module in modules],
            [partial(vars(module).update, training=module.training) for module in modules],
        )

    return Block(steps)


def _names(own: Sequence[str], wanted: Sequence[str] | None, what: str) -> list[str]:
    wanted = list(wanted or ())
    if len(wanted) > len(own):
        raise ValueError(f"{len(wanted)} {what}_names for {len(own)} {what}s: {', '.join(own)}")
    return [*wanted, *own[len(wanted) :]]


class _Export:
    """One export: the captures, and what is written from them."""

    def __init__(
        self,
        model: Any,
        args: Any,
        kwargs: dict[str, Any],
        sizes: list[dict[int, str]],
        opset: int,
        first: Graph,
        of_data: DataSizes,
    ) -> None:
        self.model, self.args, self.kwargs = model, args, kwargs
        self.sizes, self.opset = sizes, opset
        # Sizes that depend on data: these, too, are others in each capture; equal ones may have to be one.
        self.of_data = of_data
        self.is_tied = False
        # What was captured of it as it is, which serves where no size varies and no more is taken apart.
        self.first: Graph | None = first
        self.multiples = True
        self.reasons: dict[str, str] = {}  # why these were taken apart
        self.apart: set[str] = set()  # ops that are written as what they are made of

    def _called(self, op: Any, args: Any, kwargs: Any) -> bool:
        return op.name in CHECKING or self._kept(op, args, kwargs)

    def _kept(self, op: Any, args: Any, kwargs: Any) -> bool:
        return op.name in LOWERINGS and op.name not in self.apart

    def _captures(self) -> list[Graph]:
        """Return the graph, where sizes vary for several choices of them."""
        count = _CAPTURES if self._varies() else 1
        first, self.first = self.first, None
        if count == 1 and first is not None:
            return [self._in_pieces(first, self.of_data)]
        while True:
            try:
                return [self._captured(number, count) for number in range(count)]
            except Exception:
                if count > 1 and self.multiples:
                    self.multiples = False
                elif len(self.of_data.found) > 1 and not self.is_tied:
                    self.multiples = self.is_tied = True
                else:
                    raise

    def _varies(self) -> bool:
        return any(self.sizes) or bool(self.of_data.found)

    def _captured(self, number: int, count: int, few: Mapping[str, int] | None = None) -> Graph:
        places: dict[int, int] = {}
        tensors: list[Tensor] = []

        def noted(tensor: Tensor) -> Tensor:
            if id(tensor) not in places:
                places[id(tensor)] = len(tensors)
                tensors.append(tensor)
            dims = self.sizes[places[id(tensor)]] if places[id(tensor)] < len(self.sizes) else {}
            if not dims or count == 1:
                return tensor
            return resized(tensor, {d: chosen[n] for d, n in dims.items()})

        chosen = self._choice(number) | dict(few or {})
        args, kwargs = mapped((self.args, self.kwargs), noted)
        try:
            data_sizes = DataSizes(self._data_names(), chosen if count > 1 else None)
            graph = capture(
                self.model, *args, kwargs=kwargs, level=self._called, data_sizes=data_sizes
            )
            if count == 1:
                self.of_data = data_sizes
        except Exception as error:
            if count > 1:
                sizes = ", ".join(f"{name} = {size}" for name, size in chosen.items())
                error.add_note(
                    f"while exporting with {sizes}: a size that varies may have to be fixed"
                )
            raise
        return self._in_pieces(graph, data_sizes)

    def _in_pieces(self, graph: Graph, data_sizes: DataSizes) -> Graph:
        """Put what composites without a lowering are made of in their place: capture keeps calls in place."""
        others: dict[Value, Value] = {}
        # What was read depends on buffers and constants alone, which a model always has as they are here.
        checks = known_op("graph.expect"), known_op("graph.expect_shape")
        graph.nodes = [node for node in graph.nodes if node.op not in checks]
        for node in list(graph.nodes):
            if node.op.kind != "composite" or self._kept(node.op, (), {}):
                continue
            values = list(dict.fromkeys(node.values()))
            tensors = [ops.zeros(v.shape, dtype=v.dtype, device=v.device) for v in values]
            given = dict(zip(values, tensors, strict=True))
            op, arguments = node.op, map_values(node.args, given.__getitem__)
            try:
                inner = capture(
                    lambda *_, op=op, arguments=arguments: call(op, arguments),
                    *tensors,
                    level=self._kept,
                    asserted=op.name in CHECKING,
                )
            except Uncapturable:
                continue
            inner.nodes = [node for node in inner.nodes if node.op not in checks]
            made = list(values_in(inner.result))
            if len(made) != len(node.outputs) or inner.writes:
                continue
            place = graph.nodes.index(node)
            known = dict(zip(inner.arguments, values, strict=True))
            for value in [value for value in inner.inputs if value.kind != "input"]:
                tensor, value.name = inner.state[value.name], graph.name(value.name)
                graph.inputs.append(value)
                graph.state[value.name] = tensor
            own = {value: value for part in inner.nodes for value in part.outputs}
            own |= {value: value for value in inner.inputs} | known
            for part in inner.nodes:
                part.args = map_values(part.args, own.__getitem__)
                part.source = node.source
                for value in part.outputs:
                    value.name = graph.name(value.name)
            graph.nodes[place + 1 : place + 1] = inner.nodes
            for old, new in zip(node.outputs, made, strict=True):
                source = known.get(new, new)
                others[old] = others.get(source, source)
            graph.nodes.remove(node)
        graph.replace_all(others)
        graph.remove_unused(data_sizes.nodes)
        return graph

    def _choice(self, number: int) -> dict[str, int]:
        """Return sizes for a capture: none of them 1, and of any two the courses differ.

        They are multiples at first, which programs that halve sizes want; else a little larger ones.
        """
        base: dict[str, int] = {}
        for dims, tensor in zip(self.sizes, tensors_of((self.args, self.kwargs)), strict=False):
            for dim, name in dims.items():
                base.setdefault(name, max(tensor.shape[dim], 2))
        for name, size in zip(self._data_names(), self.of_data.found, strict=True):
            base.setdefault(name, max(size, 2))
        more = [(number * (place + 1), size) for place, size in enumerate(base.values())]
        steps = [size * n for n, size in more] if self.multiples else [n for n, _ in more]
        return {name: size + step for (name, size), step in zip(base.items(), steps, strict=True)}

    def _tell_courses(self, graph: Graph) -> None:
        """Warn if the program does something else for so few elements that no capture had them."""
        course = _course(graph)
        for name, size in itertools.product(dict.fromkeys(self._data_names()), (1, 0)):
            try:
                other = self._captured(0, _CAPTURES, {name: size})
            except Exception:  # what the program does of so few is its own affair
                continue
            if _course(other) != course:
                warnings.warn(
                    f"the program does something else where a size that depends on data is {size}: the model "
                    "does what it does where that is larger",
                    stacklevel=4,
                )
                return

    def _data_names(self) -> list[str]:
        taken = {name for dims in self.sizes for name in dims.values()}
        return self.of_data.names_for(taken, self.is_tied)

    def write(self, names: Sequence[str], output_names: Sequence[str] | None) -> Any:
        """Return the model; an op of several that cannot be said as it is, is taken apart."""
        while True:
            graphs = self._captures()
            writer = Writer(self.opset)
            graph = merged(graphs, writer)
            failed: list[tuple[Node, str]] = []
            for value, name in zip(graph.arguments, names, strict=True):
                writer.take(value, writer.name(name))
            helper = onnx_package("numpy_helper")
            for value in graph.inputs:
                if value.kind != "input":
                    if value.dtype not in TYPE_NUMBERS:
                        raise ONNXError(
                            f"{value.kind} {value.name!r} is {value.dtype}, which ONNX lacks"
                        )
                    array = host_array(graph.state[value.name])  # whose memory stays here
                    if value.dtype.is_complex:
                        parts = writer.name(value.name), writer.name(value.name)
                        give_parts(writer, value, parts)
                        writer.initializers += map(
                            helper.from_array, [array.real.copy(), array.imag.copy()], parts
                        )
                    else:
                        constant = writer.take(value, writer.name(value.name))
                        writer.initializers.append(helper.from_array(array, constant))
            made: Sequence[str | None] | None
            for node in graph.nodes:
                try:
                    if is_complex(node):
                        made = lower_complex(writer, node)
                    else:
                        made = lower(writer, node) if self._kept(node.op, (), {}) else None
                    reason = (
                        "" if made else REASONS.get(node.op.name, "ONNX has no operator like it")
                    )
                except Inexpressible as error:
                    made, reason = None, str(error)
                except TypeError as error:
                    if not self._varies():
                        raise
                    made, reason = None, f"a size that varies: {error}"
                if made is None or len(made) < len(node.outputs):
                    failed.append((node, reason or "it returns what ONNX does not"))
                    made = [writer.name("missing") for _ in node.outputs]
                for value, own in zip(node.outputs, made, strict=False):
                    if own is not None:
                        writer.take(value, own)
            composites = {n.op.name for n, _ in failed if n.op.kind == "composite"} - self.apart
            if failed and composites:
                self.apart |= composites
                self.reasons = {n.op.name: reason for n, reason in failed} | self.reasons
                continue
            if failed:
                raise _refusal([(n, self.reasons.get(n.op.name, reason)) for n, reason in failed])
            self._tell_courses(graph)
            return self._model(graph, writer, output_names)

    def _model(self, graph: Graph, writer: Writer, output_names: Sequence[str] | None) -> Any:
        helper = onnx_package("helper")
        changed = [old.name for old, _ in graph.writes if old.kind != "buffer"]
        if changed:
            raise ONNXError(
                f"the program changes {changed[0]!r} in place, which a model cannot: return it instead"
            )
        results = list(values_in(graph.result))
        if any([value in writer.parts for value in results]):
            raise ONNXError(
                "the program returns complex numbers, which no operator of ONNX takes: "
                "return view_as_real of them"
            )
        own = ["output" if i == 0 else f"output_{i}" for i in range(len(results))]
        outputs: list[Any] = []
        for value, wanted in zip(results, _names(own, output_names, "output"), strict=True):
            name = writer.name(wanted)
            writer.nodes.append(helper.make_node("Identity", [writer.names[value]], [name]))
            outputs.append(_described(writer, value, name, self._symbols()))
        inputs = [_described(writer, v, writer.names[v], self._symbols()) for v in graph.arguments]
        nodes = _without_copies(writer.nodes, {o.name for o in outputs})
        used = {name for node in nodes for name in node.input}
        kept = [tensor for tensor in writer.initializers if tensor.name in used]
        body = helper.make_graph(nodes, type(self.model).__name__, inputs, outputs, kept)
        imports = [helper.make_opsetid("", self.opset)]
        version = helper.find_min_ir_version_for(imports)
        from importlib.metadata import version as installed

        proto = helper.make_model(
            body,
            opset_imports=imports,
            ir_version=max(version, 8),
            producer_name="tensorplug",
            producer_version=installed("tensorplug"),
        )
        own = [writer.names[v] for v in graph.inputs if v.kind == "parameter" and v in writer.names]
        helper.set_model_props(proto, {PARAMETERS: json.dumps(own)})
        return proto

    def _symbols(self) -> dict[Size, str]:
        """Return the names of sizes by what they were in the captures."""
        choices = [self._choice(number) for number in range(_CAPTURES)]
        return {Size([c[name] for c in choices]): name for name in choices[0]}


def _course(graph: Graph) -> list[Any]:
    """Return which ops a graph calls, and of which values, by their numbers."""
    values = [*graph.inputs, *[value for node in graph.nodes for value in node.outputs]]
    numbers = {value: number for number, value in enumerate(values)}
    calls = [(node.op, [numbers[value] for value in node.values()]) for node in graph.nodes]
    return [*calls, [numbers[value] for value in graph.outputs()]]


def _described(writer: Writer, value: Value, name: str, symbols: Mapping[Size, str]) -> Any:
    shape = [
        symbols.get(size, f"{name}_dim_{axis}") if isinstance(size, Size) else size
        for axis, size in enumerate(writer.shape(value))
    ]
    helper = onnx_package("helper")
    return helper.make_tensor_value_info(name, TYPE_NUMBERS[value.dtype], shape)


def _without_copies(nodes: list[Any], outputs: set[str]) -> list[Any]:
    """Take out the copies: of what a node makes for an output, the node makes the output itself."""
    users: dict[str, int] = {}
    for node in nodes:
        for name in node.input:
            users[name] = users.get(name, 0) + 1
    makers = {name: node for node in nodes for name in node.output}
    gone: set[int] = set()
    renamed: dict[str, str] = {}
    for node in nodes:
        for i, name in enumerate(node.input):
            node.input[i] = renamed.get(name, name)
        if node.op_type != "Identity":
            continue
        source, name = node.input[0], node.output[0]
        maker = makers.get(source)
        if name not in outputs:
            renamed[name] = source
            gone.add(id(node))
            users[source] = users.get(source, 0) + users.get(name, 0) - 1
        elif maker is not None and users[source] == 1 and source not in outputs:
            place = list(maker.output).index(source)
            maker.output[place] = name
            makers[name] = maker
            gone.add(id(node))
    return [node for node in nodes if id(node) not in gone]


def _refusal(failed: Sequence[tuple[Node, str]]) -> UnsupportedOperatorError:
    found = dict.fromkeys((node.op.name, reason) for node, reason in failed)
    lines = [
        f"  {node.op.name}{f' ({node.source})' if node.source else ''}: {reason}"
        for node, reason in failed
    ]
    text = "\n".join(dict.fromkeys(lines))
    return UnsupportedOperatorError(
        f"the program has ops that ONNX cannot express:\n{text}", list(found)
    )


def save(
    proto: Any,
    path: str | os.PathLike[str],
    external: bool | None = None,
    data: bytes | None = None,
) -> None:
    """Write the file, with weights beside it where they are too large; `data` is the model, written."""
    onnx, path = onnx_package(), Path(path)
    if external or (external is None and data is None and proto.ByteSize() >= LIMIT):
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)
        beside = f"{path.name}.data"
        (path.parent / beside).unlink(missing_ok=True)
        onnx.save(copy, path, save_as_external_data=True, location=beside, size_threshold=1024)
        onnx.checker.check_model(str(path))
    else:
        path.write_bytes(proto.SerializeToString() if data is None else data)
