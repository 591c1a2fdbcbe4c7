"""Programs in files: a module's graph with its state, run again without the module's code.

:func:`export` captures what a module does; :func:`save` writes it as a zip of JSON and safetensors, in which
there is no code, and :func:`load` reads that.
"""

from .dims import Dim as Dim, DimHint as DimHint
from .exporting import export as export
from .files import load as load, save as save
from .program import ExportedProgram as ExportedProgram, Signature as Signature

__all__ = ["Dim", "ExportedProgram", "export", "load", "save"]
