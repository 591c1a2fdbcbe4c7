"""The gradient layer: records ops on tensors that require grad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core.dispatch import op_registry
from tensorplug.core.dispatch.call_cache import CachedCall
from tensorplug.core.dispatch.counts import recording_on, settle
from tensorplug.core.dispatch.gradient_layer import GradientLayer
from tensorplug.core.dispatch.layers import recording
from tensorplug.core.dispatch.op import Op
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.dispatch.view_plans import ViewPlan, ViewPlans
from tensorplug.core.tensor.base import TRACKED, VIEW, TensorBase, extra_of, new_tensor
from tensorplug.core.tensor.tensor import Tensor

from ..engine.backward import backward, backward_from
from ..engine.derivatives import ARGUMENT, BOTH, NOTHING, THE_OUTPUT, CompiledDerivative
from . import bodies, saved_tensors, views
from .handles import RemovableHandle
from .nodes import MultiNode, Node, OpNode, OutputNode, new_node, node_extra
from .recording import (
    Recording,
    any_requires,
    attach,
    attach_several,
    build,
    build_listed,
    build_view,
    build_views,
    fill_node,
    inference_saved,
    mark_inference,
    missing,
    save_all,
    shared,
)
from .views import edge_of, note_view, refresh, requires_grad, retain

CLONE = op_registry.handle("clone")
COPY = op_registry.handle("copy")


class Recorder(GradientLayer):
    """Records what a backward pass needs."""

    # --- recording ---

    def enabled(self) -> bool:
        """Return whether this thread records."""
        return recording.enabled and recording_on()

    def record_unary(self, op: Op, output: Any, input: Any) -> None:
        """Record a pointwise op of one tensor."""
        key = output._key
        if not key.is_differentiable or not (input._state == TRACKED or requires_grad(input)):
            return
        rule = op.derivative
        if rule is None:  # compiled, an attribute of None is no AttributeError but a crash
            rule = missing(op)
        plan = rule.quick[1]
        if plan is None:
            plan = rule.plan(1)
        if plan.partial:
            return
        only = plan.only
        extra = input._extra
        if only == 0:
            if extra is not None and extra.inference:
                raise inference_saved()
            storage = input._storage
            versions: Any = (input._writes if storage is None else storage.version,)
            saved: Any = (input,)
        elif only == NOTHING:
            saved = versions = ()
        elif only == THE_OUTPUT:
            saved = (shared(output),)
            versions = (output._storage.version,)
        else:
            saved, versions = save_all(plan, (input,), (output,))
        if input._view is not None:
            refresh(input)
        node = new_node()
        node.fill(output, (input._node or input,), plan, saved, versions, None)
        output._node = node
        output._state = TRACKED
        if self.watched:
            saved_tensors.watch(node)

    def record_binary(
        self, op: Op, output: Any, input: Any, other: Any, left: int, right: int, broadcast: bool
    ) -> None:
        """Record a pointwise op of two tensors, or of a tensor and a number."""
        mask = 0
        edges: Any = ()
        if left and (left == TRACKED or requires_grad(input)):
            first = input
            if first._view is not None:
                refresh(first)
            mask = 1
            edges = (first._node or first,)
        if right and (right == TRACKED or requires_grad(other)):
            second = other
            if second._view is not None:
                refresh(second)
            edge = second._node or second
            edges = (edges[0], edge) if mask else (edge,)
            mask |= 2
        rule = op.derivative
        if rule is None:
            rule = missing(op)
        plan = rule.quick[mask]
        if plan is None:
            plan = rule.plan(mask)
        if plan.partial or not edges:
            edges = tuple([edge_of((input, other)[f.position]) for f in plan.formulas])
            if not edges:
                return
        only = plan.only
        if only >= 0:
            kept = other if only else input
            saved: Any = (kept,)
            if isinstance(kept, TensorBase):
                tensor = kept
                if tensor._extra is not None and tensor._extra.inference:
                    raise inference_saved()
                storage = tensor._storage
                versions: Any = (tensor._writes if storage is None else storage.version,)
            else:
                versions = (None,)
        elif only == NOTHING:
            saved = versions = ()
        elif only == BOTH and isinstance(input, TensorBase):
            first = input
            if first._extra is not None and first._extra.inference:
                raise inference_saved()
            saved = (first, other)
            storage = first._storage
            version = first._writes if storage is None else storage.version
            if isinstance(other, TensorBase):
                second = other
                if second._extra is not None and second._extra.inference:
                    raise inference_saved()
                storage = second._storage
                versions = (version, second._writes if storage is None else storage.version)
            else:
                versions = (version, None)
        else:
            saved, versions = save_all(plan, (input, other), (output,))
        sizes: Any = None
        if broadcast:
            # The gradient of a tensor that was broadcast has to be summed.
            sizes = tuple([(input, other)[f.position]._shape for f in plan.formulas])
        node = new_node()
        # As OpNode.fill does: where this is Python, a call would cost as much as the rest.
        node.sizes = sizes
        node.edges = edges
        node.key = output._key
        node.shape = output._shape
        node.pending = 0
        node.extra = None
        node.plan = plan
        node.saved = saved
        node.versions = versions
        output._node = node
        output._state = TRACKED
        if self.watched:
            saved_tensors.watch(node)

    def record(self, op: Op, values: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        """Record any op."""
        if any([output._key.is_differentiable for output in outputs]):
            node = build(op, values, outputs)
            if node is not None:
                attach(node, outputs)

    def record_cached(self, op: Op, cached: CachedCall, args: tuple[Any, ...], output: Any) -> None:
        """Record a primitive with one output, whose spec was cached."""
        if not output._key.is_differentiable:
            return
        mask = 0
        for number, index in enumerate(cached.slots):
            tensor = args[cached.arg_indices[number]]
            if tensor._state and (tensor._state == TRACKED or requires_grad(tensor)):
                mask |= 1 << index
        if not mask:
            return
        how = cached.recordings.get(mask)
        if how is None or how.rule is not op.derivative:
            how = cached.recordings[mask] = Recording(op, cached, mask, args, output._shape)
        if how.edges:
            node = new_node()
            fill_node(how, node, args, output, None)
            output._node = node
            output._state = TRACKED

    def record_listed(self, op: Op, cached: CachedCall, tensors: Any, output: Any) -> None:
        """Record an op of a list of tensors with one output, whose spec was cached."""
        if output._key.is_differentiable:
            build_listed(op, cached, tensors, output)

    def record_cached_outputs(
        self, op: Op, cached: CachedCall, args: tuple[Any, ...], outputs: Any
    ) -> None:
        """Record a composite with several outputs, whose spec was cached."""
        mask = 0
        for number, index in enumerate(cached.slots):
            tensor = args[cached.arg_indices[number]]
            if tensor._state and (tensor._state == TRACKED or requires_grad(tensor)):
                mask |= 1 << index
        if not mask:
            return
        how = cached.recordings.get(mask)
        if how is None or how.rule is not op.derivative:
            how = cached.recordings[mask] = Recording(op, cached, mask, args, ())
        if not how.edges:
            return
        several = MultiNode()
        fill_node(how, several, args, outputs[0], outputs)
        attach_several(several, outputs, how.rule.connected)

    def record_body(self, recorded: Any, tensors: Any, output: Any, found: Any) -> None:
        """Record a composite whose body was replayed."""
        bodies.record_body(recorded, tensors, output, found)

    def differentiate(self, inputs: Any, outputs: Any, gradients: Any) -> Any:
        """Return the gradients of those of `inputs` that require grad, as tensors that are recorded."""
        return bodies.differentiate(inputs, outputs, gradients)

    def mark_if_inference(self, output: Any) -> None:
        """Mark what was made in inference mode."""
        if recording.inference:
            mark_inference(output)
        else:
            settle()

    def record_view(
        self, op: Op, source: Any, values: tuple[Any, ...], output: Any, plan: ViewPlan | None
    ) -> None:
        """Make a view, and record it if its source requires grad."""
        if source._extra is not None and source._extra.inference:
            mark_inference(output)  # no view, and no history, wherever it is made
            return
        enabled = not dispatch_state.grad_disabled or recording_on()
        rule: CompiledDerivative | None = op.derivative
        if rule is not None and not rule.formulas:
            return  # the same bytes as other numbers: only memory and version are shared
        note_view(op, source, values, output, enabled)
        if not output._key.is_differentiable:
            return
        if source._state and enabled and (source._state == TRACKED or requires_grad(source)):
            node = build_view(op, source, values, output, plan)
            if node is not None:
                output._node = node
                output._state = TRACKED
                return
        output._state = VIEW

    def record_views(self, source: Any, outputs: Any, plans: ViewPlans) -> None:
        """Make several views of a source that requires grad, and record them as one node."""
        if source._extra is not None and source._extra.inference:
            for output in outputs:
                mark_inference(output)
            return
        for number, plan in enumerate(plans.views):
            note_view(plan.op, source, plan.values, outputs[number], False)
        build_views(source, outputs, plans)

    def release_view(self, output: Any) -> None:
        """Make a view, of a tensor that nobody else holds, a tensor of its own; it keeps its history."""
        refresh(output)
        output._state = 0 if output._node is None else TRACKED
        output._view = None

    # --- writing in place ---

    def before_inplace(
        self, op: Op, target: Any, values: tuple[Any, ...]
    ) -> tuple[Any, ...] | None:
        """Refuse writes to leaves; return what to record the write with, or None if it needs none."""
        if target._extra is not None:
            _refuse_inference(f"{op.name}_", target)
        if dispatch_state.grad_disabled and not recording_on():
            return None
        own = requires_grad(target)
        view = target._view
        if own and target._node is None and (view is None or not requires_grad(view.base)):
            raise RuntimeError(
                f"{op.name}_(): a leaf Variable that requires grad is being used in an in-place "
                "operation; wrap the update in `with tp.no_grad():`, or work on a clone()"
            )
        tracked = own or any_requires(values)
        if (view is not None and tracked) or (view is not None and requires_grad(view.base)):
            base = view.base
            views.refuse_overlap(op, target)
            if not view.recorded:
                raise views.refused(op.name, target)
            if requires_grad(base) and base._node is None:
                raise RuntimeError(
                    f"{op.name}_(): a view of a leaf Variable that requires grad is being used in an "
                    "in-place operation."
                )
            if own and view.op is views.AS_STRIDED:
                views.renew(target)
        if not tracked:
            return None
        if not target._key.is_differentiable:
            return None
        if op.derivative is None:
            missing(op)
        return _with_old_value(op, target, values)

    def record_inplace(self, op: Op, target: Any, values: tuple[Any, ...], version: int) -> None:
        """Make the op the maker of what `target` now holds."""
        rule: CompiledDerivative = op.derivative
        storage = target._storage
        before = {
            id(value): version
            for value in values
            if value is target
            or (isinstance(value, TensorBase) and storage is not None and value._storage is storage)
        }
        node = build(op, values, (target,), versions_before=before)
        if node is None:
            # The new value depends on nothing that requires grad.
            node = OpNode()
            node.fill(target, (), rule.plan(0), (), (), None)
        extra = target._extra
        if target._view is not None:
            views.rebase(target, node)
        else:
            before_write = target._node
            target._node = node
            target._state = TRACKED
            if extra is not None and extra.retains_grad:
                retain(target, before_write)

    def relayout(self, name: str, target: Any, show: Callable[[Any], Any]) -> None:
        """Turn a tensor into a view of itself, unless it is a leaf that requires grad."""
        _refuse_inference(name, target)
        if (not dispatch_state.grad_disabled or recording_on()) and requires_grad(target):
            if target._view is not None and not target._view.recorded:
                raise views.refused(name[:-1], target)
            if target._node is None:
                raise RuntimeError(
                    f"{name}(): a leaf Variable that requires grad is being used in an in-place "
                    f"operation; use {name[:-1]}(), which returns another view"
                )
            if target._view is not None and target._view.base._node is None:
                raise RuntimeError(
                    f"{name}(): a view of a leaf Variable that requires grad is being used in an "
                    "in-place operation."
                )
        views.relayout(target, show)

    # --- attributes of tensors ---

    def requires_grad(self, tensor: Any) -> bool:
        """Return whether a view requires grad by now."""
        try:
            return requires_grad(tensor)
        except RuntimeError:  # no node fits what it shows; only its use is wrong
            return True

    def set_requires_grad(self, tensor: Any, value: bool) -> None:
        """Make a leaf require grad or not.

        Raises
        ------
        RuntimeError
            If the dtype has no derivatives, or the tensor is no leaf and should stop requiring grad.
        """
        if value:
            if not tensor._key.is_differentiable:
                raise RuntimeError(
                    "only Tensors of floating point dtype can require gradients, or complex ones, got "
                    f"{tensor.dtype}"
                )
            if tensor._extra is not None and tensor._extra.inference and not recording.inference:
                raise RuntimeError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                    "allowed; make a normal tensor with clone()"
                )
            if not requires_grad(tensor):
                tensor._state = TRACKED
        elif tensor.grad_fn is not None:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables; use var.detach() to get a "
                "tensor that doesn't require differentiation"
            )
        else:
            tensor._state = 0 if tensor._view is None else VIEW

    def grad_fn(self, tensor: Any) -> Any:
        """Return the node that made the tensor."""
        if not tensor._state or not requires_grad(tensor):
            return None
        edge = edge_of(tensor)
        if edge is tensor:
            return None
        return edge.parent if isinstance(edge, OutputNode) else edge

    def backward(
        self, tensor: Any, gradient: Any, retain_graph: Any, create_graph: bool, inputs: Any
    ) -> None:
        """Run the backward pass from one tensor."""
        if inputs is None:
            backward_from(tensor, gradient, retain_graph, create_graph)
        else:
            backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)

    def retain_grad(self, tensor: Any) -> None:
        """Keep the gradient of a non-leaf."""
        if not requires_grad(tensor):
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if tensor.is_leaf:
            return
        node_of(tensor)  # of a view, one that fits its base's
        extra_of(tensor).retains_grad = True
        retain(tensor, None)

    def register_hook(self, tensor: Any, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook` with the tensor's gradient."""
        if not requires_grad(tensor):
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not tensor.is_leaf:
            return RemovableHandle.register(node_extra(node_of(tensor)).tensor_hooks, hook)
        extra = extra_of(tensor)
        if extra.backward_hooks is None:
            extra.backward_hooks = {}
        return RemovableHandle.register(extra.backward_hooks, hook)

    def register_post_accumulate_grad_hook(
        self, tensor: Any, hook: Callable[..., Any]
    ) -> RemovableHandle:
        """Call `hook` with a leaf after its gradient was accumulated."""
        if not requires_grad(tensor):
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not tensor.is_leaf:
            raise RuntimeError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors"
            )
        extra = extra_of(tensor)
        if extra.post_accumulate_hooks is None:
            extra.post_accumulate_hooks = {}
        return RemovableHandle.register(extra.post_accumulate_hooks, hook)

    def detach_(self, tensor: Any) -> None:
        """Take the tensor out of its graph."""
        if tensor._view is not None:
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        tensor._node = None
        tensor._state = 0
        if tensor._tangents is not None:
            tensor._tangents = None  # not cleared: nodes may share them


def node_of(tensor: Any) -> Node:
    """Return the node of a tensor that is no leaf."""
    node: Node = edge_of(tensor)
    return node


def _refuse_inference(name: str, target: Any) -> None:
    if target._extra is not None and target._extra.inference and not recording.inference:
        raise RuntimeError(
            f"{name}(): Inplace update to inference tensor outside InferenceMode is not "
            "allowed. You can make a clone to get a normal tensor before doing inplace update."
        )


def _with_old_value(op: Op, target: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an op's arguments, with a copy in place of the target if a formula needs its old value."""
    if op is COPY and target._view is not None:
        # What was there has a gradient of zeros, which the base's node sees to.
        return (new_tensor(target._array, target._key, target._shape), *values[1:])
    mask = 0
    for position, value in enumerate(values):
        if isinstance(value, TensorBase):
            mask |= (value._state and requires_grad(value)) << position
        elif isinstance(value, (list, tuple)):
            mask |= any_requires(value) << position
    plan = op.derivative.plans.get(mask) or op.derivative.plan(mask)
    for _, origin, position in plan.saves:
        if origin == ARGUMENT and values[position] is target:
            key = target._key
            array = key.kernels[CLONE.index](target._array)
            kept = new_tensor(array, key, target._shape)
            if target._state and requires_grad(target):
                kept._node = edge_of(target)
                kept._state = TRACKED
            return tuple([kept if value is target else value for value in values])
    return values


# As Python, isinstance is quickest with an object's own class; compiled, this name is the C type.
globals()["TensorBase"] = Tensor
dispatch_state.set_gradient(Recorder())
