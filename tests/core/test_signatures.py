# ruff: noqa: E501
"""Signatures of public classes, methods and functions beside torch's: parameters, their order, kinds and defaults."""

import importlib
import inspect
import re

import pytest

import tensorplug as tp

MODULES = """accelerator amp autograd autograd.forward_ad autograd.functional autograd.graph distributions
    distributions.constraints distributions.transforms func futures fx hub library masked nn nn.functional nn.init
    nn.utils nn.utils.parametrizations nn.utils.parametrize nn.utils.prune nn.utils.rnn optim optim.lr_scheduler
    optim.swa_utils overrides quasirandom random serialization signal.windows utils.benchmark utils.checkpoint
    utils.data utils.flop_counter utils.hooks"""

#: Signatures that are others, by the reason.
OTHERWISE = {
    "settings of torch's compiler, archives and files that are not here":
        "nn.functional.linear_cross_entropy serialization.save library.infer_schema "
        "utils.benchmark.Timer.collect_callgrind random.fork_rng",
    "an override has to be asked for, as in torch where it had no such argument":
        "library.register_fake library.impl_abstract library.Library.impl",
    "texts of graphs have fewer variants":
        "fx.Graph.python_code fx.GraphModule.print_readable fx.Node.format_node fx.Node.is_impure "
        "fx.Graph.placeholder fx.Node.replace_all_uses_with",
    "Python's concurrent.futures names them so": "futures.Future.add_done_callback futures.Future.set_exception",
    "the parent class has value, which its own methods are called with":
        "distributions.HalfCauchy.icdf distributions.HalfNormal.icdf",
    "intermediates that torch accepts and leaves unused":
        "distributions.CorrCholeskyTransform.log_abs_det_jacobian "
        "distributions.transforms.CorrCholeskyTransform.log_abs_det_jacobian",
    "a constraint that does not say is continuous, and of no dimension; torch's raises when asked":
        "distributions.constraints.dependent distributions.constraints.dependent_property",
    "max_try_correction is a number here, torch looks it up": "distributions.Wishart.rsample",
    "works on any device; see deviations.md": "amp.GradScaler autograd.graph.save_on_cpu",
    "weights_only is the default": "hub.load_state_dict_from_url",
    "torch's default, masked=False, is meant": "autograd.gradgradcheck",
    "torch's default generator is meant": "utils.data.random_split",
    "policies are asked before the op, which has no output yet": "utils.checkpoint.SelectiveCheckpointContext",
    "takes any of torch's positional forms":
        "overrides.handle_torch_function accelerator.device_index",
}  # fmt: skip


def default(parameter):
    if parameter.default is parameter.empty:
        return None
    text = repr(parameter.default)
    if " at 0x" in text or len(text) > 60:
        return "..."
    # A tuple stands for a Size; no layout for the strided one.
    return {"torch.Size([])": "()", "torch.strided": "None"}.get(
        text, re.sub(r"\btensorplug\.", "torch.", text)
    )


def shown(function):
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    return [(p.name, p.kind.name, default(p)) for p in signature.parameters.values()]


def found(root, path):
    for part in path.split("."):
        root = getattr(root, part, None)
    return root


def pairs(torch):
    for path in MODULES.split():
        theirs = found(torch, path) or importlib.import_module(f"torch.{path}")
        ours = importlib.import_module(f"tensorplug.{path}")
        for name in getattr(theirs, "__all__", None) or dir(theirs):
            one, other = getattr(theirs, name, None), getattr(ours, name, None)
            public = callable(one) and not name.startswith("_")
            if not public or other is None or not (one.__module__ or "").startswith("torch"):
                continue
            yield f"{path}.{name}", one, other
            for member, value in vars(one).items() if inspect.isclass(one) else ():
                if (
                    not member.startswith("_")
                    and inspect.isfunction(value)
                    and hasattr(other, member)
                ):
                    yield f"{path}.{name}.{member}", value, getattr(other, member)


@pytest.mark.filterwarnings("ignore")
def test_signatures():
    torch = pytest.importorskip("torch")
    known = {name for names in OTHERWISE.values() for name in names.split()}
    count, differing = 0, {}
    for label, theirs, ours in pairs(torch):
        expected, got = shown(theirs), shown(ours)
        if expected is None or got is None:
            continue
        count += 1
        if expected != got and any(
            k not in ("VAR_POSITIONAL", "VAR_KEYWORD") for _, k, _ in expected
        ):
            differing[label] = expected, got
    assert {name: both for name, both in differing.items() if name not in known} == {}
    assert known - differing.keys() == set()
    assert count > 1300
    assert tp is not torch
