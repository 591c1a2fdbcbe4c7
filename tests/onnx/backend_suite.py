"""ONNX's own backend tests, as the package ships them: each model loaded, run, and compared.

``python tests/onnx/backend_suite.py`` runs all of them and prints the figures; with ``--write FILE`` they go
into a page of the documentation.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import tensorplug as tp

KINDS = ("simple", "light", "pytorch-converted", "pytorch-operator")


def node_cases(modules=None):
    """Return the cases of single operators: all, or those that some modules of the package make."""
    from onnx.backend.test.case import node as package

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if modules is None:
            return package.collect_testcases(None)
        for name in modules:
            importlib.import_module(f"{package.__name__}.{name}")
    return package._NodeTestCases


def stored_cases(kinds=KINDS):
    """Return the cases that are files of the package."""
    from onnx.backend.test import loader

    return [case for kind in kinds for case in loader.load_model_tests(kind=kind)]


def to_value(value):
    """Return what a module takes for what a test gives."""
    if hasattr(value, "SerializeToString"):
        from onnx import numpy_helper

        value = numpy_helper.to_array(value)
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind in "OUS":
            return np.vectorize(lambda s: s.decode() if isinstance(s, bytes) else s)(value).tolist()
        return tp.from_numpy(np.array(value))
    if isinstance(value, list | tuple):
        return [to_value(item) for item in value]
    return value


#: The suite's tolerance is less than one step of numbers of 16 bits: there two steps are allowed.
STEPS = {"float16": 2 * 2**-10, "bfloat16": 2 * 2**-7}


def compare(found, expected, case):
    """Raise an AssertionError where what was computed is not what was expected."""
    if hasattr(expected, "SerializeToString"):
        from onnx import numpy_helper

        expected = numpy_helper.to_array(expected)
    if isinstance(expected, list | tuple) or (
        isinstance(expected, np.ndarray) and expected.dtype.kind in "OUS"
    ):
        expected = (
            list(expected) if isinstance(expected, list | tuple) else expected.reshape(-1).tolist()
        )
        assert len(found) == len(expected), f"{len(found)} items, {len(expected)} expected"
        for one, other in zip(found, expected, strict=True):
            compare(one, other, case)
        return
    if expected is None or isinstance(expected, str | dict):
        assert found == expected, f"{found!r}, {expected!r} expected"
        return
    expected = np.asarray(expected)
    dtype = str(expected.dtype)
    assert str(found.dtype).split(".")[-1] == dtype, f"dtype {found.dtype}, {dtype} expected"
    assert tuple(found.shape) == expected.shape, (
        f"shape {tuple(found.shape)}, {expected.shape} expected"
    )
    if expected.dtype.kind == "V" or "float8" in dtype or dtype == "bfloat16":
        found, expected = found.float(), expected.astype(np.float32)
    np.testing.assert_allclose(
        found.detach().cpu().numpy(),
        expected,
        rtol=max(case.rtol, STEPS.get(dtype, 0)),
        atol=case.atol,
    )


def data_sets(case, model):
    """Yield the inputs and outputs of a case, which may be files."""
    if case.data_sets is not None:
        yield from case.data_sets
        return
    import onnx
    from onnx import numpy_helper

    def read(path, kind):
        data = path.read_bytes()
        if kind.HasField("sequence_type"):
            proto = onnx.SequenceProto()
            proto.ParseFromString(data)
            return numpy_helper.to_list(proto)
        if kind.HasField("optional_type"):
            proto = onnx.OptionalProto()
            proto.ParseFromString(data)
            return numpy_helper.to_optional(proto)
        proto = onnx.TensorProto()
        proto.ParseFromString(data)
        return numpy_helper.to_array(proto)

    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        yield tuple(
            [
                read(folder / f"{name}_{i}.pb", value.type)
                for i, value in enumerate(values)
                if (folder / f"{name}_{i}.pb").exists()
            ]
            for name, values in (("input", model.graph.input), ("output", model.graph.output))
        )


#: Outputs of these are random: shapes and dtypes are compared.
RANDOM = (
    "bernoulli",
    "dropout_random",
    "training_dropout",
    "randomnormal",
    "randomuniform",
    "multinomial",
)


def run_case(case):
    """Run a case: "passed", or "unsupported" or "failed" with the reason."""
    import onnx

    model = case.model or onnx.load(Path(case.model_dir) / "model.onnx")
    try:
        module = tp.onnx.load(
            model if case.model is not None else Path(case.model_dir) / "model.onnx"
        )
    except tp.onnx.UnsupportedOperatorError as error:
        return "unsupported", "; ".join(sorted({reason for _, reason in error.operators}))
    except Exception as error:
        return "failed", f"load: {type(error).__name__}: {error}"
    for inputs, outputs in data_sets(case, model):
        try:
            with tp.no_grad(), warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = module(*[to_value(value) for value in inputs])
        except Exception as error:
            notes = " ".join(getattr(error, "__notes__", []))
            return "failed", f"run: {type(error).__name__}: {error} {notes}"
        found = [found] if len(outputs) == 1 and len(module.output_names) == 1 else list(found)
        for one, other in zip(found, outputs, strict=True):
            try:
                if any(part in case.name for part in RANDOM):
                    assert tuple(one.shape) == np.shape(other)
                else:
                    compare(one, other, case)
            except Exception as error:
                return "failed", f"compare: {type(error).__name__}: {error}"
    return "passed", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--failures", action="store_true", help="print each failure")
    parser.add_argument("--only", default="", help="cases whose name has this")
    options = parser.parse_args()
    counts = {}
    reasons = Counter()
    failures = []
    for case in [*node_cases(), *stored_cases()]:
        if options.only not in case.name:
            continue
        result, reason = run_case(case)
        counts.setdefault(case.kind, Counter())[result] += 1
        if result == "unsupported":
            reasons[reason] += 1
        elif result == "failed":
            failures.append(f"{case.name}: {' '.join(reason.split())[:400]}")
    for kind, found in counts.items():
        print(f"{kind}: {sum(found.values())} cases, {dict(found)}")
    for reason, count in reasons.most_common():
        print(f"unsupported {count}: {reason}")
    print("\n".join(failures))
    return len(failures)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(bool(main()))
