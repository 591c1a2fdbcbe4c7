"""The samples of all ops, exported, checked, run by onnxruntime, and compared with what the ops return.

``python tests/onnx/op_samples.py`` prints how many ops ONNX can express, and for the others the reasons;
``make test-onnx`` runs it.
"""

import argparse
import contextlib
import sys
from collections import Counter

import numpy as np

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.graph import Uncapturable
from tensorplug.testing import cases
from tensorplug.testing.records import all_records

#: Memory as it is found has no values to compare.
UNDEFINED = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}

#: What reasons are told as.
KINDS = (
    "takes complex numbers", "complex numbers", "depends on data", "decompositions of matrices",
    "no such function", "of a stream", "generator", "BitCast", "no operator like it",
)  # fmt: skip

RECORDS = sorted([r for r in all_records() if r.op not in UNDEFINED], key=lambda record: record.op)


def session_of(proto):
    """Return onnxruntime's session of a model, without its optimizations: they round otherwise."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    data = proto.SerializeToString()
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def run(proto, tensors):
    """Return what onnxruntime computes for tensors."""
    session = session_of(proto)
    names = [i.name for i in session.get_inputs()]
    feed = {name: t.detach().numpy() for name, t in zip(names, tensors, strict=True)}
    return session.run(None, feed)


def compare(found, expected):
    """Raise an AssertionError where results differ by more than rounding."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        other = other.detach().numpy()
        assert one.dtype == other.dtype, f"dtype {one.dtype}, {other.dtype} expected"
        assert one.shape == other.shape, f"shape {one.shape}, {other.shape} expected"
        eps = {"float16": 5e-3, "float32": 2e-4, "float64": 1e-6}.get(str(other.dtype), 0)
        np.testing.assert_allclose(one, other, rtol=eps, atol=eps, equal_nan=True)


def check(record, dtype, turned=False):
    """Return what happens to an op's samples: counts, and reasons by outcome.

    Turned tensors lie the other way round in memory, as the program makes them of what it gets.
    """
    op = get_op(record.op)
    found, reasons = Counter(), {}
    for sample in cases.samples_of(record, "cpu", dtype):
        values = list(cases.tensors_in((sample.args, sample.kwargs)))
        if len({id(v) for v in values}) < len(values):
            values = list({id(v): v for v in values}.values())
        try:
            outcome, reason = one_sample(op, sample, values, turned)
        except Exception as error:
            outcome, reason = "failed", f"{type(error).__name__}: {error}"
        found[outcome] += 1
        reasons.setdefault(outcome, reason)
    return found, reasons


def in_pairs(tensor):
    """Return complex numbers as ONNX takes them, and anything else as it is."""
    return tp.view_as_real(tensor).contiguous() if tensor.dtype.is_complex else tensor


def one_sample(op, sample, values, turned=False):
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    if any(v.dtype.is_floating_point and bool(v.isnan().any()) for v in values):
        return "skipped", "onnxruntime passes NaN on in some places and not in others"
    if any(isinstance(v, tp.Generator) for v in sample.kwargs.values()):
        return "inexpressible", "a generator of random numbers"
    arguments = cases.map_tensors((sample.args, sample.kwargs), lambda t: t.detach().clone())
    try:
        with tp.no_grad():
            expected = op.call(*arguments[0], **arguments[1])
    except Exception as error:
        return "skipped", str(error)
    arguments = cases.map_tensors((sample.args, sample.kwargs), lambda t: t.detach().clone())
    inputs = list({id(t): t for t in cases.tensors_in(arguments)}.values())
    feed = [t.clone() for t in inputs]
    if turned:
        feed = [t.mT.contiguous() if t.ndim > 1 else t for t in feed]
    feed = [in_pairs(t) for t in feed]
    expected = cases.map_tensors(expected, in_pairs)
    numbers = {id(t): number for number, t in enumerate(inputs)}

    def program(*tensors):
        def given(tensor):
            found = tensors[numbers[id(tensor)]]
            found = tp.view_as_complex(found) if tensor.dtype.is_complex else found
            return found.mT if turned and found.ndim > 1 else found

        args, kwargs = cases.map_tensors(arguments, given)
        return cases.map_tensors(op.call(*args, **kwargs), in_pairs)

    try:
        proto = tp.onnx.export(program, tuple([t.clone() for t in feed]))
    except tp.onnx.UnsupportedOperatorError as error:
        return "inexpressible", "; ".join(sorted({f"{n}: {r}" for n, r in error.operators}))[:160]
    except Uncapturable as error:
        return "inexpressible", f"its shape or course depends on data ({error.reason[:80]})"
    except tp.onnx.ONNXError as error:
        return "inexpressible", str(error)[:160]
    if not proto.graph.output:
        return "skipped", "no tensor returned"
    try:
        result = run(proto, feed)
    except (state.NotImplemented, state.InvalidGraph, state.Fail) as error:
        text = str(error)
        if "Could not find an implementation" in text or "Type Error" in text:
            return "no kernel", text[-160:]
        return "failed", f"onnxruntime: {text[:300]}"
    compare(result, list(cases.tensors_in(expected)))
    return "equal", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="ops whose name has this")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--share", default="0/1", help="which part of how many")
    options = parser.parse_args()
    part, parts = map(int, options.share.split("/"))
    whole, some, none, failures, samples = [], [], {}, [], Counter()
    for record in RECORDS[part::parts]:
        if options.only not in record.op:
            continue
        wanted = getattr(tp, options.dtype)
        dtype = wanted if wanted in record.dtypes else record.dtypes[0]
        found, reasons = check(record, dtype)
        samples.update(found)
        if found["failed"]:
            failures.append(
                f"{record.op}: {dict(found)} {' '.join(reasons['failed'].split())[:300]}"
            )
        elif not found["equal"]:
            if set(found) != {"skipped"}:
                reason = reasons.get("inexpressible") or reasons.get("no kernel", "")
                none.setdefault(reason, []).append(record.op)
        elif set(found) <= {"equal", "skipped"}:
            whole.append(record.op)
        else:
            some.append(
                f"{record.op}: {dict(found)} {reasons.get('inexpressible') or reasons.get('no kernel')}"
            )
    total = len(whole) + len(some) + sum(map(len, none.values())) + len(failures)
    print(
        f"ops {total}: all samples equal {len(whole)}, some {len(some)}, none {sum(map(len, none.values()))}"
    )
    print(f"failed {len(failures)}; samples {dict(samples)}")
    kinds = Counter()
    for reason, names in none.items():
        kinds[next((text for text in KINDS if text in reason), reason)] += len(names)
    for reason, count in kinds.most_common():
        print(f"| {reason} | {count} |")
    for reason, names in sorted(none.items(), key=lambda item: -len(item[1])):
        print(f"none ({len(names)}): {reason}: {', '.join(names)}")
    print("\n".join(["some: " + line for line in some] + ["FAILED " + line for line in failures]))
    return len(failures)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(bool(main()))
