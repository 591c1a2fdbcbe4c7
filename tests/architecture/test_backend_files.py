"""The files of a backend's kernels are named by the families of ops."""

from pathlib import Path

import pytest

from tensorplug.testing.families import FAMILIES

BACKENDS = Path(__file__).parents[2] / "backends"
CYTHON = BACKENDS / "cpu_cython/src/tensorplug_cpu_cython"
CUDA = BACKENDS / "cuda_cupy/src/tensorplug_cuda_cupy"

#: What serves several families, or none: loops over elements, layouts, the machine, libraries.
SHARED = {
    "cpu_cython kernels": ({"pointwise", "pointwise_fused"}, CYTHON / "kernels", "*.py"),
    "cpu_cython modules": (
        {
            *(
                "allocator",
                "broadcasting",
                "cpu_features",
                "layouts",
                "memory_overlap",
                "onednn",
                "types",
            ),
            *("pointwise", "pointwise_fused", "pointwise_tiles", "onednn_network"),
        },
        CYTHON,
        "*.p[yx][xd]",
    ),
    "cpu_cython C": (
        {
            *(
                "allocator",
                "arrays",
                "level",
                "moments",
                "onednn",
                "parallel",
                "sums",
                "types",
                "vectors",
            ),
            *("pointwise", "pointwise_fused", "pointwise_names", "pointwise_fused_names"),
            *("pointwise_chains", "pointwise_links", "pointwise_tiles"),
            *("onednn_network", "onednn_network_parts"),
            *(
                "bessel",
                "circular",
                "division",
                "elementary64",
                "extremes",
                "loops",
                "philox",
                "vmath",
            ),
            "strided_iteration",
        },
        CYTHON / "c",
        "*.[ch]",
    ),
    "cuda_cupy kernels": ({"layouts", "pointwise"}, CUDA / "kernels", "*"),
    "cuda_cupy sources": (set(), CUDA / "sources", "*.cu"),
}


def test_there_are_45_families():
    assert len(FAMILIES) == 45


@pytest.mark.parametrize("which", SHARED)
def test_files_are_named_by_family(which):
    """A family's own name, or for its topics ``<family>_<topic>``."""
    shared, folder, pattern = SHARED[which]
    stems = {path.stem for path in folder.glob(pattern)} - {"__init__", "__pycache__"}
    assert stems
    others = {s for s in stems if s not in FAMILIES and s.partition("_")[0] not in FAMILIES}
    assert others - shared == set()
