"""A sample of ONNX's own backend tests; ``make test-onnx`` runs all of them."""

import pytest

pytest.importorskip("onnx")
import backend_suite

#: Modules of the package with the cases of operators whose rules are intricate.
MODULES = """
    batch_normalization clip convtranspose cumsum div einsum gathernd gemm if_ loop lstm maxpool mod
    nonmaxsuppression onehot pad qlinearconv quantizelinear reducemax reshape resize scan scatternd slice
    split topk unique ai_onnx_ml.tree_ensemble
"""


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES.split())
def test_operators(module):
    before = {case.name for case in backend_suite.node_cases([])}
    cases = [case for case in backend_suite.node_cases([module]) if case.name not in before]
    found = {case.name: backend_suite.run_case(case) for case in cases}
    assert {name: result for name, result in found.items() if result[0] == "failed"} == {}


def test_models():
    found = {case.name: backend_suite.run_case(case) for case in backend_suite.stored_cases()}
    assert {name: result for name, result in found.items() if result[0] == "failed"} == {}
    assert sum(result[0] == "passed" for result in found.values()) >= 130
