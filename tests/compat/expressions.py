# ruff: noqa: E501, F401  # the expressions need the imports
"""Expressions over names that libraries import of torch; they give the same, or such an error, on both sides.

A line is an expression; its value is compared as text. Run as a program, the file evaluates all and writes a line of
JSON for each, and one of what flop_models.py counts.
"""

import argparse
import collections
import dataclasses
import datetime as dt
import importlib
import importlib.metadata
import importlib.util
import inspect
import io
import json
import pathlib
import random
import typing
import warnings
from typing import Any

EXPRESSIONS = """
# --- libraries find torch
[importlib.util.find_spec("torch").name for _ in range(2)]
importlib.util.find_spec("torch.nope")
importlib.util.find_spec("torchnosuch")
importlib.metadata.version("torch").partition(".")[0]
"training" in typing.get_type_hints(torch.nn.Module)
all(typing.get_type_hints(c) is not None for c in vars(torch.nn).values() if isinstance(c, type))
typing.get_args(torch.LongTensor | None)[1] is type(None)
isinstance(torch.zeros(1).long(), torch.LongTensor)
callable(torch.nn.Module.cuda), callable(torch.nn.Module.xpu), callable(torch.nn.Module.cpu)
Sloppy([torch.nn.Parameter(torch.ones(2))]).step()
list(Early().named_modules())[1][0]
raised(lambda: Early().nothing)
under_no_grad()
isinstance(torch.nn.parallel.DistributedDataParallel, type)
type(torch.compile(torch.nn.Linear(2, 2), backend="eager")._orig_mod).__name__
torch.nn.functional.interpolate(picture, size=(3, 5), mode="bilinear").tolist()
torch.nn.functional.interpolate(picture, size=(3, 5), mode="bilinear", antialias=True).tolist()
torch.nn.functional.interpolate(picture, size=(9, 11), mode="bicubic", antialias=True).tolist()
torch.nn.functional.interpolate(picture, size=(3, 5), mode="nearest").tolist()
# --- names that libraries import
torch.utils.hooks.RemovableHandle(collections.OrderedDict()).id >= 0
torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(torch.arange(3))).tolist()
torch.utils._pytree.tree_flatten({"a": [1, 2], "b": (3,)})[0]
torch.utils._pytree.tree_map(lambda v: v + 1, {"a": [1, 2], "b": (3,)})
register_pytree()
torch.fx.symbolic_trace(Branch()).code.strip().splitlines()[-1].strip()
[n.op for n in torch.fx.symbolic_trace(Branch()).graph.nodes]
torch.fx.symbolic_trace(Branch())(torch.ones(2)).tolist()
callable(torch.hub.load), callable(torch.hub.load_state_dict_from_url), torch.hub.get_dir()[-3:]
callable(torch.utils.model_zoo.load_url)
torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.has_torch_function((torch.ones(1),))
seen_by_mode()
torch.types.Device is not None, torch.types.Number is not None
torch.accelerator.is_available(), torch.accelerator.device_count()
custom_op()
raised(lambda: torch.ops.nosuch.thing(1))
torch.ops.aten.add.Tensor(torch.ones(2), torch.ones(2)).tolist()
torch.ops.aten.mm.default(torch.ones(2, 2), torch.ones(2, 2)).tolist()
{torch.ops.aten.mm.default: 1}[torch.ops.aten.mm.default]
str(torch.ops.aten.add.Tensor), str(torch.ops.aten.mm)
torch.profiler.ProfilerActivity.CPU.name
[t.tolist() for t in torch._foreach_add([torch.ones(2), torch.ones(1)], 2)]
[t.tolist() for t in torch._foreach_mul([torch.ones(2), torch.ones(1)], [3.0, 4.0])]
[t.tolist() for t in torch._foreach_norm([torch.ones(4), torch.ones(1)])]
torch.quasirandom.SobolEngine(2).draw(4).tolist()
torch.distributions.utils.logits_to_probs(torch.zeros(2)).tolist()
done_future()
torch.torch_version.TorchVersion("2.1.0") < (2, 2)
isinstance(torch.__config__.show(), str), isinstance(torch.version.__version__, str)
str(torch._C._nn._parse_to("cpu", dtype=torch.float64)[1])
disabled()
callable(importlib.import_module("torch.optim.optimizer")._use_grad_for_differentiable)
importlib.import_module("torch.optim.optimizer").required is not None
isinstance(importlib.import_module("torch.utils.data.datapipes.iter").IterableWrapper, type)
torch.distributed.is_initialized()
torch.compiler.is_compiling(), torch.compiler.disable(lambda: 3)()
flex()
torch.cuda.is_available() or raised(lambda: torch.cuda.current_device()) != ""
all(hasattr(torch.cuda, n) for n in "Stream Event CUDAGraph mem_get_info graph graphs amp stream current_stream memory_allocated".split())
torch.tensor([1.0, 300.0, 1e-3]).to(torch.float8_e4m3fn).float().tolist()
torch.tensor([1.0, 300.0, 1e-3]).to(torch.float8_e5m2).float().tolist()
torch.zeros(3).untyped_storage().nbytes(), torch.zeros(3).storage().size(), torch.zeros(3).data_ptr() != 0
torch.zeros(0).set_(torch.arange(4.0).untyped_storage(), 1, (2,), (1,)).tolist()
torch.UntypedStorage(4).nbytes(), torch.TypedStorage(4, dtype=torch.float32).size()
torch.jit.Final[int] is not None, torch.jit.script_if_tracing(lambda v: v)(3), torch.jit.is_scripting()
torch.ao.quantization.QuantStub()(torch.ones(1)).tolist()
torch.utils.benchmark.Timer("1 + 1").timeit(2).number_per_run
flops()
isinstance(torch.utils.collect_env.get_pretty_env_info(), str)
pruned()
callable(torch.masked.masked_tensor), torch.masked.sum(torch.ones(3), mask=torch.tensor([True, False, True])).item()
issubclass(torch.OutOfMemoryError, RuntimeError)
issubclass(torch.cuda.OutOfMemoryError, RuntimeError)
torch.dropout(torch.ones(2), 0.5, False).tolist(), torch.embedding(torch.eye(2), torch.tensor([1])).tolist()
torch.batch_norm(torch.ones(2, 2), None, None, None, None, True, 0.1, 1e-5, False).tolist()
callable(torch.lstm), callable(torch.ctc_loss), callable(torch.gru_cell)
[n for n in dir(torch.distributions) if of_class(torch.distributions, n, "Distribution") or of_class(torch.distributions, n, "Transform")]
[n for n in dir(torch.distributions.transforms) if of_class(torch.distributions.transforms, n, "Transform")]
callable(torch.distributions.kl_divergence), callable(torch.distributions.register_kl), callable(torch.distributions.biject_to)
type(Narrow(torch.zeros(()), torch.ones(())).expand((2,))).__name__
raised(lambda: torch.nosuch)
keeps_products()
raised(lambda: torch.utils.checkpoint.create_selective_checkpoint_contexts([torch.ops.aten.mm]))
data_class()
torch.func.functionalize(lambda x: x.clone().add_(1))(torch.ones(2)).tolist()
torch.func.replace_all_batch_norm_modules_(nn.Sequential(nn.BatchNorm1d(2)))[0].running_mean
hooked_everywhere()
raised(lambda: two_kinds_of_hooks())
node_of_a_function()
torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (torch.ones(1),)).tolist()
torch._higher_order_ops.while_loop(lambda i: i < 3, lambda i: (i + 1,), (torch.tensor(0),))[0].item()
unwrapped({"module.weight": 1, "step": 2})
[importlib.import_module("torch.nn.common_types")._size_2_t is not None, importlib.import_module("torch.utils._triton").has_triton()]
importlib.import_module("torch.cuda.amp.autocast_mode").autocast.__name__, importlib.import_module("torch.amp.grad_scaler").OptState.READY.name
scaled_by_device_type()
torch.utils.weak.WeakIdRef(picture) == torch.utils.weak.WeakIdRef(picture)
torch.utils.data.dataloader.get_worker_info(), torch.rnn_tanh_cell(*[torch.ones(1, 1)] * 4).item()
torch.cuda.get_arch_list(), raised(lambda: torch.accelerator.memory_stats()) != "nothing raised"
# --- text that programs cut
torch.ones(1).type(), torch.LongTensor([1]).type(), repr(torch.Size([1, 2])), str(torch.strided), str(torch.channels_last)
repr(torch.eye(2).to_sparse()), repr(torch.max(torch.eye(2), 0)), repr(torch.linalg.slogdet(torch.eye(2)))
# --- streams, events and helpers
isinstance(torch.cpu.current_stream(), torch.cpu.Stream)
cpu_stream()
raised(lambda: torch.Event(device="cpu"))
torch.Event.__name__, torch.Stream.__name__
swapped()
torch.utils.checkpoint.get_device_states(torch.ones(2))
torch.utils._python_dispatch.is_traceable_wrapper_subclass(torch.ones(1))
dispatched()
wrapped_subclass()
importlib.import_module("torch.utils._mode_utils").no_dispatch is not None
# --- subclasses
type(torch.ones(2).as_subclass(Own) + 1).__name__
type(torch.ones(2).as_subclass(Own).sum()).__name__
own_parameter()
# --- sparse tensors
torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2)).to_dense().tolist()
torch.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 2.0], (2, 2)).to_dense().tolist()
torch.sparse.mm(torch.eye(2).to_sparse(), torch.ones(2, 2)).tolist()
(torch.eye(2).to_sparse() @ torch.ones(2, 2)).tolist()
torch.eye(2).to_sparse().t().coalesce().indices().tolist()
(torch.eye(2).to_sparse() * 3).to_dense().tolist(), torch.sparse.sum(torch.eye(2).to_sparse()).item()
torch.sparse.spdiags(torch.arange(8.0).reshape(2, 4), torch.tensor([-1, 2]), (3, 5)).to_dense().tolist()
torch.swapaxes(torch.zeros(2, 3), axis0=0, axis1=1).shape
sparse_grad()
sparse_embedding()
# --- files
[type(v).__name__.lower() for v in kept(STRANGE, weights_only=False)]
raised(lambda: kept(pathlib.PurePosixPath("a")))
raised(lambda: kept(argparse.Namespace(a=1)))
vars(kept(argparse.Namespace(a=1), weights_only=False))
type(kept(torch.nn.Linear(2, 2), weights_only=False)).__name__
raised(lambda: kept(torch.nn.Linear(2, 2)))
allowed()
# --- messages and typing
raised(lambda: torch.add(torch.ones(1)))
raised(lambda: torch.add(torch.ones(1), torch.ones(1), torch.ones(1), torch.ones(1)))
raised(lambda: torch.nn.Conv2d(3))
raised(lambda: torch.empty(-5))
raised(lambda: torch.empty(1 << 60))
raised(lambda: torch.nn.Embedding(3, 2)(torch.tensor([5])))
raised(lambda: torch.nn.functional.embedding(torch.tensor([5]), torch.ones(3, 2)))
raised(lambda: torch.nn.functional.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([1])))
warned()
inspect.signature(torch.nn.Linear.forward).parameters["input"].name
decorated.__name__, list(inspect.signature(decorated).parameters)
"""


def evaluate() -> None:
    """Evaluate all expressions and write what each gave."""
    import torch
    import torch._higher_order_ops
    import torch.fx
    import torch.nn.attention.flex_attention
    import torch.nn.utils.prune
    import torch.optim.optimizer
    import torch.utils._python_dispatch
    import torch.utils.benchmark
    import torch.utils.checkpoint
    import torch.utils.collect_env
    import torch.utils.dlpack
    import torch.utils.model_zoo
    import torch.utils.weak
    from torch import nn

    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    STRANGE = [
        pathlib.PurePosixPath("a"), dt.date(2020, 1, 1), collections.defaultdict(list, a=[1]),
        argparse.Namespace(a=1), range(3), torch.ones(1).numpy(), torch.ones(1).numpy()[0], random.Random(0),
        torch.device("cpu"), torch.float32, torch.Size([1]), collections.Counter("ab"),
        slice(1), 1j, {1}, frozenset([1]),
    ]  # fmt: skip
    picture = (torch.arange(48).reshape(1, 1, 6, 8) * 37 % 256).to(torch.uint8)

    class Sloppy(torch.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            self.param_groups = [{"params": list(params)}]
            self.state = collections.defaultdict(dict)
            self.defaults = {}

        def step(self, closure: Any = None) -> Any:
            return [p.tolist() for p in self.param_groups[0]["params"]]

    class Early(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(1, 1)

        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

    class Branch(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.relu(x + 1).sum(0, keepdim=True)

    class Own(torch.Tensor):
        pass

    def raised(call: Any) -> str:
        try:
            call()
        except Exception as error:
            known = [c for c in type(error).__mro__ if c.__module__ in ("builtins", "_pickle")]
            return known[0].__name__
        return "nothing raised"

    def under_no_grad() -> Any:
        with torch.no_grad():
            try:
                return torch.ones(2, requires_grad=True).numpy().tolist()
            except RuntimeError as error:
                return type(error).__name__

    def register_pytree() -> Any:
        class Pair:
            def __init__(self, a: Any, b: Any) -> None:
                self.a, self.b = a, b

        pytree = torch.utils._pytree
        pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda v, c: Pair(*v))
        return pytree.tree_map(lambda v: v * 2, Pair(1, [2])).b

    def seen_by_mode() -> Any:
        class Mode(torch.overrides.TorchFunctionMode):
            def __torch_function__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                names.append(func.__name__)
                return func(*args, **(kwargs or {}))

        names: list[str] = []
        with Mode():
            torch.add(torch.ones(1), 1).sum()
        return names

    def custom_op() -> Any:
        @torch.library.custom_op("tried::twice", mutates_args=())
        def twice(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @twice.register_fake
        def _(x: Any) -> Any:
            return torch.empty_like(x)

        twice.register_autograd(lambda ctx, g: g * 2)
        x = torch.ones(2, requires_grad=True)
        torch.ops.tried.twice.default(x).sum().backward()
        return x.grad.tolist(), torch.ops.tried.twice(x).tolist()

    def done_future() -> Any:
        future: Any = torch.futures.Future()
        future.set_result(3)
        return future.then(lambda f: f.wait() + 1).wait()

    def disabled() -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            return type(torch.ones(1).as_subclass(Own) + 1).__name__

    def flex() -> Any:
        flex_attention = torch.nn.attention.flex_attention.flex_attention
        q = torch.arange(16.0).reshape(1, 1, 4, 4) / 16
        return flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s + (i - j)).sum().item()

    def flops() -> Any:
        with importlib.import_module("torch.utils.flop_counter").FlopCounterMode(
            display=False
        ) as counter:
            nn.Linear(3, 4)(torch.ones(2, 3)).sum().backward()
        return counter.get_total_flops(), {
            str(k): v for k, v in counter.get_flop_counts()["Global"].items()
        }

    class Narrow(torch.distributions.Gumbel):
        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Narrow, _instance)
            return super().expand(batch_shape, _instance=new)

    def of_class(module: Any, name: str, base: str) -> bool:
        found = getattr(module, name)
        return isinstance(found, type) and issubclass(found, getattr(module, base))

    def keeps_products() -> Any:
        checkpoint = torch.utils.checkpoint
        asked, run = set(), []

        def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
            asked.add((str(op), ctx.is_recompute))
            kept = op == torch.ops.aten.mm.default
            policies = checkpoint.CheckpointPolicy
            return policies.MUST_SAVE if kept else policies.PREFER_RECOMPUTE

        class Noting(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                run.append(str(func))
                return func(*args, **(kwargs or {}))

        x, w = torch.eye(2, requires_grad=True), torch.full((2, 2), 0.5, requires_grad=True)
        y = checkpoint.checkpoint(
            lambda x: torch.sigmoid(x @ w) @ w, x, use_reentrant=False,
            context_fn=lambda: checkpoint.create_selective_checkpoint_contexts(policy),
        )  # fmt: skip
        with Noting():
            y.sum().backward()
        counts = [run.count(f"aten.{name}.default") for name in ("mm", "sigmoid")]
        return sorted(asked), counts, x.grad.tolist(), w.grad.tolist()

    def data_class() -> Any:
        pytree = torch.utils._pytree
        pair = dataclasses.make_dataclass("Pair", ["a", "b"])
        pytree.register_dataclass(pair)
        return pytree.tree_leaves(pair(1, [2])), pytree.tree_map(lambda v: v + 1, pair(1, 2)).b

    def hooked_everywhere() -> Any:
        module, seen = importlib.import_module("torch.nn.modules.module"), []
        handles = [
            module.register_module_forward_pre_hook(lambda m, a: seen.append("before")),
            module.register_module_forward_hook(lambda m, a, o: seen.append("after")),
            module.register_module_parameter_registration_hook(lambda m, n, p: seen.append(n)),
        ]
        nn.Linear(1, 1)(torch.ones(1))
        for handle in handles:
            handle.remove()
        return seen

    def two_kinds_of_hooks() -> None:
        layer = nn.Linear(1, 1)
        layer.register_full_backward_hook(lambda *args: None)
        layer.register_backward_hook(lambda *args: None)

    def node_of_a_function() -> Any:
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                ctx.factor = 2
                return x * 2

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * 2

        node = Double.apply(torch.ones(1, requires_grad=True)).grad_fn
        saved = [t.tolist() for t in node.saved_tensors]
        return type(node).__name__, node.factor, saved, node.needs_input_grad

    def scaled_by_device_type() -> Any:
        cuda, cpu, files = torch.cuda.amp, torch.cpu.amp, "torch.cuda.amp"
        mode = importlib.import_module(f"{files}.autocast_mode")
        scaler = importlib.import_module(f"{files}.grad_scaler")
        made = (
            cuda.autocast(),
            cuda.autocast(False),
            mode.autocast(enabled=False),
            cpu.autocast(True),
        )
        with made[-1]:
            dtype = (torch.ones(1, 1) @ torch.ones(1, 1)).dtype
        functions = cuda.custom_fwd(len), cuda.custom_fwd(cast_inputs=torch.float32)(len)
        scales = cuda.GradScaler(2.0, enabled=False), scaler.GradScaler(enabled=False)
        return (
            [isinstance(one, torch.autocast) for one in made],
            str(dtype),
            [callable(function) for function in functions],
            [one.is_enabled() for one in scales],
        )

    def own_parameter() -> Any:
        layer = nn.Module()
        layer.weight = nn.Parameter(torch.ones(2).as_subclass(Own))
        return type(layer.weight).__name__, len(list(layer.parameters()))

    def unwrapped(state: Any) -> Any:
        utils = importlib.import_module("torch.nn.modules.utils")
        utils.consume_prefix_in_state_dict_if_present(state, "module.")
        return sorted(state.items())

    def pruned() -> Any:
        layer = nn.Linear(3, 1)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor([[3.0, 1.0, 2.0]]))
        torch.nn.utils.prune.l1_unstructured(layer, "weight", 1)
        return layer.weight.tolist()

    def cpu_stream() -> Any:
        with torch.cpu.stream(torch.cpu.Stream()):
            return torch.cpu.synchronize(), torch.cpu.device_count()

    def swapped() -> Any:
        a, b = torch.ones(2), nn.Parameter(torch.zeros(3))
        torch.utils.swap_tensors(a, b)
        return type(a).__name__, a.tolist(), type(b).__name__, b.tolist()

    def dispatched() -> Any:
        class Mode(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                names.append(str(func))
                return func(*args, **(kwargs or {}))

        names: list[str] = []
        with Mode():
            x = torch.mm(torch.ones(2, 2), torch.ones(2, 2))
            torch.relu(x)
        return [name for name in names if "ones" not in name]

    def wrapped_subclass() -> Any:
        class Twice(torch.Tensor):
            @staticmethod
            def __new__(cls, inner: Any) -> Any:
                return torch.Tensor._make_wrapper_subclass(
                    cls, inner.shape, dtype=inner.dtype, device=inner.device
                )

            def __init__(self, inner: Any) -> None:
                self.inner = inner

            @classmethod
            def __torch_dispatch__(
                cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                names.append(str(func))
                args = [a.inner * 2 if isinstance(a, Twice) else a for a in args]
                return func(*args, **(kwargs or {}))

        names: list[str] = []
        x = Twice(torch.ones(2, 2))
        return torch.mm(x, torch.ones(2, 2)).tolist(), names, tuple(x.shape), str(x.dtype)

    def sparse_grad() -> Any:
        dense = torch.ones(2, 2, requires_grad=True)
        torch.sparse.mm(torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse(), dense).sum().backward()
        return dense.grad.tolist()

    def sparse_embedding() -> Any:
        layer = nn.Embedding(4, 2, sparse=True)
        with torch.no_grad():
            layer.weight.fill_(1)
        for make in (torch.optim.SparseAdam, torch.optim.SGD):
            optimizer = make(layer.parameters(), lr=0.1)
            optimizer.zero_grad()
            layer(torch.tensor([1, 1, 3])).sum().backward()
            optimizer.step()
        return layer.weight.grad.is_sparse, layer.weight.tolist()

    def kept(value: Any, **options: Any) -> Any:
        file = io.BytesIO()
        torch.save(value, file)
        file.seek(0)
        return torch.load(file, **options)

    def allowed() -> Any:
        with torch.serialization.safe_globals([argparse.Namespace]):
            return vars(kept(argparse.Namespace(a=1)))

    def warned() -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y = torch.ones(1, requires_grad=True) * 2
            y.grad  # noqa: B018
        return [c.category.__name__ for c in caught]

    @torch.no_grad()
    def decorated(one: int, two: str) -> None:
        pass

    names = {**globals(), **locals()}
    for line in EXPRESSIONS.strip().splitlines():
        if line.startswith("#"):
            continue
        try:
            said = repr(eval(line, names))
        except Exception as error:
            said = f"!{type(error).__name__}: {str(error)[:200]}"
        print(json.dumps([line, said]))
    import flop_models

    print(json.dumps(flop_models.all_counts()))


if __name__ == "__main__":
    evaluate()
