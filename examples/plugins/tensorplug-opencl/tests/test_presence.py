"""Which devices are offered, and what is said of the others; no OpenCL is needed for that."""

import logging

import pyopencl as cl
import pytest
from tensorplug_opencl import plugin
from tensorplug_opencl.runtime import OpenCLRuntime

import tensorplug as tp
from tensorplug.cli import main

UNKNOWN_PROCESSOR = """clBuildProgram failed: BUILD_PROGRAM_FAILURE

Build on <pyopencl.Device 'pthread' on 'Portable Computing Language'>:

error: unknown target CPU 'generic'
Device pthread failed to build the program
"""


class StandIn:
    """A platform with one device; its compiler says what is given, or nothing."""

    def __init__(self, name, driver_version, complaint=None, extensions="cl_khr_fp64"):
        self.name = name
        self.driver_version = driver_version
        self.complaint = complaint
        self.extensions = extensions

    def get_devices(self):
        return [self]


class Program:
    def __init__(self, context, source):
        self.device = context

    def build(self, **options):
        if self.device.complaint:
            raise cl.RuntimeError(self.device.complaint)


@pytest.fixture
def with_platforms(monkeypatch):
    """Return a function that puts stand-ins in the place of what is installed."""

    def install(*platforms):
        monkeypatch.setattr(cl, "get_platforms", lambda: list(platforms))
        monkeypatch.setattr(cl, "Context", lambda devices: devices[0])
        monkeypatch.setattr(cl, "Program", Program)
        # The plugin has found its devices already, and shall find them again afterwards.
        monkeypatch.setitem(vars(plugin.runtime), "_found", OpenCLRuntime()._found)

    return install


OUTDATED = StandIn("Portable Computing Language", "3.0", UNKNOWN_PROCESSOR)


def test_a_machine_without_a_driver(monkeypatch):
    def no_platform():
        raise cl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")

    monkeypatch.setattr(cl, "get_platforms", no_platform)
    runtime = OpenCLRuntime()
    reason = runtime.unavailable_reason()
    assert "PLATFORM_NOT_FOUND_KHR" in reason
    assert "pip install 'tensorplug-opencl[pocl]'" in reason
    assert runtime.device_count() == 0


@pytest.mark.parametrize("command", ["to", "devices", "doctor"])
def test_a_platform_that_cannot_compile_is_not_offered(with_platforms, capsys, command):
    with_platforms(OUTDATED)
    assert not tp.opencl.is_available()
    if command == "to":
        with pytest.raises(RuntimeError) as caught:
            tp.ones(1).to("opencl")
        said = str(caught.value)
    else:
        assert main([command]) == 0
        said = capsys.readouterr().out
    assert "Portable Computing Language, driver version 3.0" in said
    assert "cannot compile a program (error: unknown target CPU 'generic')" in said
    assert "apt install pocl-opencl-icd" in said
    assert "OCL_ICD_VENDORS=/etc/OpenCL/vendors" in said


def test_another_platform_that_works_is_taken(with_platforms, caplog):
    with caplog.at_level(logging.WARNING):
        with_platforms(OUTDATED, StandIn("Other", "1.0"), StandIn("Small", "1.0", extensions=""))
    assert tp.opencl.is_available()
    assert tp.opencl.device_count() == 1
    assert tp.opencl.get_device_name(0) == "Other"
    outdated, small = [record.getMessage() for record in caplog.records]
    assert "unknown target CPU 'generic'" in outdated
    assert "Small has no double precision" in small


def test_what_a_compiler_says_in_another_form(with_platforms):
    with_platforms(StandIn("Silent", "1.0", "clBuildProgram failed: OUT_OF_HOST_MEMORY\n"))
    reason = plugin.runtime.unavailable_reason()
    assert "cannot compile a program (clBuildProgram failed: OUT_OF_HOST_MEMORY)" in reason


def test_a_platform_without_devices(with_platforms, monkeypatch):
    def no_device():
        raise cl.RuntimeError("clGetDeviceIDs failed: DEVICE_NOT_FOUND")

    empty = StandIn("Empty", "1.0")
    monkeypatch.setattr(empty, "get_devices", no_device)
    with_platforms(empty, StandIn("Other", "1.0"))
    assert tp.opencl.get_device_name(0) == "Other"
    with_platforms(empty)
    assert "Empty: clGetDeviceIDs failed: DEVICE_NOT_FOUND" in plugin.runtime.unavailable_reason()
