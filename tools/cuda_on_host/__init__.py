"""CuPy and CUDA kernels on the host, for want of a GPU.

CuPy's wheel runs as it is, but for one module: that of the CUDA runtime, in which NVIDIA's own is compiled,
is built again upon the runtime and driver of `driver.cpp`. Their devices are the host's memory. Work that is
queued waits until somebody waits for it, so that what reads, frees or writes too early fails. Kernels, those
that CuPy writes as well as those of tensorplug, are compiled by g++ in place of NVRTC and run one block after
another; cuBLAS, cuBLASLt, cuFFT and Thrust have short implementations that follow their documentation.

What this shows: that the calls are right, and what they compute. What it cannot show: anything that is a
GPU's own, from speed to the precision of its functions, what cuDNN, cuBLAS and CUB's compiled reductions
really do, and kernels that race.

::

    python -m cuda_on_host.build build/hosted
    HOSTED_FOLDER=build/hosted pytest -p cuda_on_host.plugin \\
        --pyargs tensorplug.testing.conformance --device cuda

Further variables: ``HOSTED_DEVICES``, how many there are; ``HOSTED_MEMORY_MB``, of each; ``HOSTED_EAGER=1``,
to run at once what is queued; ``HOSTED_REVERSE=1``, to run the last block and thread first;
``HOSTED_GUARD=1``, to end the process where a kernel reaches beyond an array; ``HOSTED_FLUSH=1``, to flush
denormal numbers to zero; ``HOSTED_DRY=1``, to compute nothing, so that launches can be counted.
"""
