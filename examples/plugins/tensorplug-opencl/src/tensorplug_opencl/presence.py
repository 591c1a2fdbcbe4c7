"""Which OpenCL devices there are, and why one of them cannot be used."""

from __future__ import annotations

import logging
import warnings
from typing import Any

LOGGER = logging.getLogger(__name__)
PROBE = "kernel void probe(global int *x) { *x = 1; }"
REMEDY = (
    "install another OpenCL: the device's own driver, or for the processor the system's PoCL "
    "(Debian: `apt install pocl-opencl-icd`); if it is not found, set OCL_ICD_VENDORS=/etc/OpenCL/vendors"
)


def usable_devices() -> tuple[list[Any], str | None]:
    """Return the devices that compile programs and have double precision, or none and why.

    A platform can be there and yet compile nothing: that of pip's ``pocl-binary-distribution`` knows no
    processor that is newer than its LLVM. Where others can be used, such a device is but logged.
    """
    try:
        import pyopencl as cl
    except ImportError as error:
        return [], f"pyopencl cannot be imported ({error}); pip install pyopencl"
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        return [], f"no OpenCL platform ({error}); pip install 'tensorplug-opencl[pocl]'"
    usable: list[Any] = []
    faults: list[str] = []
    for platform in platforms:
        try:
            devices = platform.get_devices()
        except cl.Error as error:  # some raise where they have none
            faults.append(f"{platform.name}: {error}")
            continue
        for device in devices:
            fault = _fault(cl, device)
            if fault is None:
                usable.append(device)
            else:
                faults.append(
                    f"{platform.name}, driver version {device.driver_version}: {device.name} {fault}"
                )
    if not usable:
        return [], "; ".join(["no OpenCL device can be used", *faults, REMEDY])
    for fault in faults:
        LOGGER.warning("not used: %s", fault)
    return usable, None


def _fault(cl: Any, device: Any) -> str | None:
    """Return what is wrong with a device, or None."""
    if "cl_khr_fp64" not in device.extensions.split():
        return "has no double precision"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the compiler's remarks
            # Without pyopencl's cache, which would not ask the compiler.
            cl.Program(cl.Context([device]), PROBE).build(cache_dir=False)
    except cl.Error as error:
        lines = str(error).splitlines()
        said = next((line for line in lines if "error:" in line), lines[0])
        return f"cannot compile a program ({said.strip()})"
    return None
