"""The examples in torch's documentation do here what they do there.

A sample; all of them where TENSORPLUG_FUZZ is set.
"""

import os
import warnings

import pytest

pytest.importorskip("torch", reason="its documentation is what is run")

import torch
from documentation_examples import Example, documented

EVERY = 1 if "TENSORPLUG_FUZZ" in os.environ else 5
#: Seconds and gigabytes, of what smaller ones show as well.
LARGE = ("CircularPad3d", "ReplicationPad3d", "ConvTranspose3d", "Transformer", "IterableDataset")
#: By name: what statement differs, and why that is so.
KNOWN = {
    "torch.resolve_neg": ("is_neg", "no tensor is negated lazily"),
    "torch.set_flush_denormal": ("set_flush_denormal", "False: subnormal numbers stay"),
    "torch.sort": ("x.sort()", "every sort is stable"),
    "torch.typename": ("typename", "the names are ours"),
    "torch.nn.utils.skip_init": ("weight", "shows memory as it was"),
    "torch.cholesky_inverse": ("dist", "a rounding error"),
    "torch.linalg.solve": ("allclose", "rounding errors beside a tolerance"),
    "torch.linalg.solve_triangular": ("allclose", "rounding errors beside a tolerance"),
    "torch.fft.hfft2": ("allclose", "rounding errors beside a tolerance"),
    "torch.fft.hfftn": ("allclose", "rounding errors beside a tolerance"),
    "torch.utils.data.DistributedSampler": (
        "dataset",
        "torch's module has a name that the example takes for granted",
    ),
    "torch.serialization.add_safe_globals": (
        "save",
        "a class without a module can be pickled by value here",
    ),
    "torch.serialization.safe_globals": (
        "",
        "a class without a module can be pickled by value here",
    ),
}
EXAMPLES = [(name, text) for name, text in documented() if not name.endswith(LARGE)]


def test_there_are_many():
    assert len(EXAMPLES) > 700


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"), [pytest.param(*example, id=example[0]) for example in EXAMPLES[::EVERY]]
)
def test_examples(name, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is deprecated, on either side
        example = Example(name, text)
    statement, _ = KNOWN.get(name, ("", ""))
    differing = [said for said in example.differing if name not in KNOWN or statement not in said]
    assert not differing, "\n".join(differing)
    modes = torch.overrides.has_torch_function((torch.ones(1),))
    assert not modes, "torch stays under a mode, such as a default device's"
