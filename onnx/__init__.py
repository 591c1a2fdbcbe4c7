"""Models in the ONNX format: files that other programs wrote, as modules that run and train here.

>>> import tensorplug as tp
>>> model = tp.onnx.load("resnet50.onnx")  # doctest: +SKIP
>>> model(tp.randn(2, 3, 224, 224)).shape  # doctest: +SKIP
torch.Size([2, 1000])
"""

from __future__ import annotations

if __name__ == "onnx":
    # A process started in this repository: the folder hides the package of its name.
    import sys
    from importlib import machinery, util
    from pathlib import Path

    _root = Path(__file__).resolve().parent.parent
    _others = [path for path in sys.path if Path(path).resolve() != _root]
    _spec = machinery.PathFinder.find_spec("onnx", _others)
    if _spec is None or _spec.loader is None:
        raise ModuleNotFoundError("No module named 'onnx'", name="onnx")
    sys.modules["onnx"] = _package = util.module_from_spec(_spec)
    _spec.loader.exec_module(_package)
else:
    from .errors import ONNXError, UnsupportedOperatorError
    from .exporting import export
    from .loading import load
    from .module import ONNXModule
    from .registry import supported_operators

    __all__ = [
        "ONNXError",
        "ONNXModule",
        "UnsupportedOperatorError",
        "export",
        "load",
        "supported_operators",
    ]
