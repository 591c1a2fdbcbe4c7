"""Build the Cython modules, with their C kernels once per SIMD level; the README says how to add one."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError
from setuptools.modified import newer_group

PACKAGE = "tensorplug_cpu_cython"
SOURCE = Path("src", PACKAGE)

# Each module: the C files compiled once, and those compiled at each level.
MODULES: dict[str, tuple[list[str], list[str]]] = {
    "allocator": (["allocator.c"], []),
    "cpu_features": ([], []),
    "types": ([], []),
    "pointwise_tiles": (["pointwise_tiles.c"], ["pointwise_chains.c"]),
    "copying": (["copying.c"], []),
    "padding": (["padding.c"], []),
    "creation": ([], []),
    "sorting_runs": ([], []),
    "sorting_search": ([], []),
    "rnn": ([], ["rnn.c"]),
    "rearranging_views": ([], []),
    "embedding": ([], ["embedding.c"]),
    "dropout": ([], ["dropout.c"]),
    "indexing": ([], []),
    "losses": ([], ["losses.c"]),
    "losses_ctc": ([], ["losses_ctc.c"]),
    "losses_margin": ([], ["losses_margin.c"]),
    "statistics": ([], ["statistics.c"]),
    "normalization_layer": ([], ["normalization_layer.c"]),
    "normalization_response": ([], ["normalization_response.c"]),
    "sorting": ([], ["sorting.c"]),
    "indexing_gather": ([], ["indexing_gather.c"]),
    "sorting_select": ([], ["sorting_select.c"]),
    "pointwise": (
        ["strided_iteration.c", "strided_blocks.c", "pointwise_names.c"],
        ["pointwise.c"],
    ),
    "pointwise_fused": (["pointwise_fused_names.c"], ["pointwise_fused.c"]),
    "reductions": ([], ["reductions.c"]),
    "pooling_adaptive": ([], []),
    "pooling_average": ([], ["pooling_average.c"]),
    "normalization_batch": ([], ["normalization_batch.c"]),
    "convolution_columns": ([], ["convolution_columns.c"]),
    "convolution_depthwise": ([], ["convolution_depthwise.c"]),
    "convolution_few_channels": ([], ["convolution_few_channels.c"]),
    "convolution_winograd": ([], ["convolution_winograd.c", "convolution_winograd_weight.c"]),
    "pooling_max": ([], ["pooling_max.c"]),
    "softmax": ([], ["softmax.c"]),
    "optimizers": ([], ["optimizers.c"]),
    "cumulative": ([], ["cumulative.c"]),
    "numeric": ([], []),
    "special": ([], ["special_functions.c"]),
    "strided": ([], []),
    "linalg_lapack": ([], []),
    "linalg_cross": ([], []),
    "linalg_tall": ([], ["linalg_tall.c"]),
    "linalg_exponential": ([], ["linalg_exponential.c"]),
    "linalg_factors": ([], []),
    "linalg_solve": ([], []),
    "linalg_orthogonal": ([], []),
    "linalg_spectra": ([], []),
    "linalg_small": ([], ["linalg_small.c", "linalg_spectra.c"]),
    "upsampling": ([], ["upsampling.c"]),
    "distances": ([], ["distances.c"]),
    "matmul_products": ([], ["matmul_products.c"]),
    "vision": ([], ["vision.c"]),
    "random": ([], ["random.c", "random_distributions.c"]),
}

# oneDNN is optional: its headers and library come as packages of their own.
ONEDNN_PACKAGES = ("onednn-devel-cpu-gomp", "onednn-cpu-gomp")


def located(distribution: str, path: str) -> Path | None:
    """Return where an installed distribution has put a file, of which the end of the path is given."""
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())).resolve() for file in files if file.match(path)), None)


ONEDNN_HEADER = located(ONEDNN_PACKAGES[0], "oneapi/dnnl/dnnl.h")
ONEDNN_LIBRARY = located(ONEDNN_PACKAGES[1], "libdnnl.so.3")
ONEDNN_INCLUDE = ONEDNN_HEADER and ONEDNN_HEADER.parents[2]
if ONEDNN_HEADER and ONEDNN_LIBRARY:
    MODULES["onednn"] = (["onednn.c"], [])
    MODULES["onednn_network"] = (
        ["onednn_network.c", "convolution_network.c"],
        ["convolution_winograd.c"],
    )
    MODULES["matmul"] = (["onednn.c"], ["matmul_few_rows.c"])
    MODULES["convolution"] = ([], [])
    MODULES["attention"] = (["onednn.c"], ["attention.c"])

IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
IS_GNU = sys.platform != "win32"
LEVELS = {"v2": "x86-64-v2", "v3": "x86-64-v3", "v4": "x86-64-v4"} if IS_X86 and IS_GNU else {}

FLAGS = ["-std=gnu11", "-O3", "-g0", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden"]
# These two passes of GCC split loops so that they are no longer vectorised.
LEVEL_FLAGS = ["-fno-thread-jumps", "-fno-split-paths"] if sys.platform == "linux" else []
OPENMP = ["-fopenmp"] if sys.platform == "linux" else []
MACROS = [
    ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
    ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION"),
]


class BuildLevels(build_ext):
    """Compiles the kernels of each module per level and links them in."""

    levels: dict[str, str]

    def run(self) -> None:
        """Build, or say what it takes."""
        try:
            super().run()
        except (BaseError, CCompilerError, OSError) as error:
            sys.exit(
                f"{error}\n\ntensorplug-cpu-cython could not be compiled; the compiler says above why. "
                "It takes a C compiler with OpenMP, such as `gcc`, and Python's headers (`python3-dev` or "
                "`python3-devel` in some systems). Without this package tensorplug uses NumPy's kernels."
            )

    def build_extensions(self) -> None:
        """Build for all levels, or, where the compiler is too old to know them, for none."""
        self.levels = LEVELS if all(map(self._knows, LEVELS.values())) else {}
        if self.levels:
            for extension in self.extensions:
                extension.define_macros = [*extension.define_macros, ("TP_LEVELS", "1")]
        super().build_extensions()

    def _knows(self, march: str) -> bool:
        """Return whether the compiler can compile for an architecture."""
        probe = Path(self.build_temp, "probe.c")
        probe.parent.mkdir(parents=True, exist_ok=True)
        probe.write_text("int probe;\n", "utf-8")
        try:
            self.compiler.compile([str(probe)], extra_postargs=[f"-march={march}"])
        except CCompilerError:
            return False
        return True

    def build_extension(self, extension: Extension) -> None:
        """Compile the levelled files, then the module, unless it is newer than all of them."""
        made_of = [*extension.sources, *extension.depends]
        if not (self.force or newer_group(made_of, self.get_ext_fullpath(extension.name))):
            return

        def compiled(level: str) -> list[str]:
            march = self.levels.get(level)
            flags = [*extension.extra_compile_args, *LEVEL_FLAGS]
            return self.compiler.compile(
                extension.levelled,
                output_dir=str(Path(self.build_temp, level)),
                macros=[*extension.define_macros, ("TP_LEVEL", level)],
                include_dirs=extension.include_dirs,
                extra_postargs=[*flags, f"-march={march}"] if march else flags,
                depends=extension.depends,
            )

        with ThreadPoolExecutor() as pool:
            objects = pool.map(compiled, self.levels or ["plain"])
        extension.extra_objects = [path for some in objects for path in some]
        super().build_extension(extension)


def extension(name: str, once: list[str], levelled: list[str]) -> Extension:
    """Return the description of one module."""
    compile_flags = [*FLAGS, *OPENMP] if IS_GNU else []
    sanitizers = os.environ.get("TENSORPLUG_SANITIZE")  # such as "address,undefined"
    link_flags = list(OPENMP)
    if sanitizers:
        compile_flags += [f"-fsanitize={sanitizers}", "-g", "-fno-omit-frame-pointer"]
        link_flags += [f"-fsanitize={sanitizers}"]
    built = Extension(
        f"{PACKAGE}.{name}",
        [str(SOURCE / f"{name}.pyx"), *[str(SOURCE / "c" / file) for file in once]],
        include_dirs=[
            np.get_include(),
            str(SOURCE),
            str(SOURCE / "c"),
            sysconfig.get_path("include"),
        ],
        define_macros=MACROS,
        extra_compile_args=compile_flags,
        extra_link_args=link_flags,
        depends=[
            *[str(header) for header in (SOURCE / "c").glob("*.h")],
            *[str(SOURCE / "c" / file) for file in levelled],
        ],
    )
    if any(file.startswith("onednn") for file in once):
        built.include_dirs.append(str(ONEDNN_INCLUDE))
        built.extra_link_args += [str(ONEDNN_LIBRARY), "-Wl,-rpath,$ORIGIN/../../.."]
    built.levelled = [str(SOURCE / "c" / file) for file in levelled]
    return built


DIRECTIVES = {
    "language_level": 3,
    "binding": False,  # a plain C function is the fastest to call
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
}


def cythonized() -> list[Extension]:
    """Return the modules with their C made; what cythonize drops of them is put back."""
    described = [extension(name, *files) for name, files in MODULES.items()]
    built = cythonize(described, compiler_directives=DIRECTIVES, include_path=["src"])
    for module, original in zip(built, described, strict=True):
        module.levelled = original.levelled
    return built


setup(
    ext_modules=cythonized(),
    cmdclass={"build_ext": BuildLevels},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
