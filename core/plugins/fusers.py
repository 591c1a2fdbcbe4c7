"""What a plugin supplies so that parts of captured programs run as one call: fusers.

A compiled program is a list of calls of kernels on raw arrays. ``tensorplug.graph`` shows it to the fusers of
its device, the one of the highest priority first; each names regions that it computes in one go, and
compiles those that it is given. What no fuser takes, and what fails, runs kernel by kernel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import PluginWarning, warn

if TYPE_CHECKING:
    from ..device.dtypes import DType
    from ..tensor.shapes import Shape


class Operand(NamedTuple):
    """Stands for an array among the arguments of a step.

    Attributes
    ----------
    place : int
        Its place among the program's arrays.
    """

    place: int


class ArrayFacts(NamedTuple):
    """What is known of an array of a program before it runs.

    Attributes
    ----------
    shape, strides : tuple of int
        The strides in elements.
    dtype : DType
    constant : bool
        Whether :meth:`FusionProgram.constant` has its value: it is state, such as a weight.
    """

    shape: Shape
    strides: Shape
    dtype: DType
    constant: bool


#: The op of a step that runs a region.
FUSED = "fused"


class FusionStep(NamedTuple):
    """A call of a kernel.

    Attributes
    ----------
    op : str
    kernel : callable
        What serves it, on the right device where its type has several.
    arguments : tuple
        The canonical ones, with an :class:`Operand` in the place of each array.
    inputs, outputs : tuple of int
        The places of arrays that go in and come out.
    view : bool
        Whether the result shows the memory of an argument.

    Notes
    -----
    What a fuser of a higher priority took is a step with the op `FUSED`, one argument, a list, and results in
    a list, or None where its own kernels are to run.
    """

    op: str
    kernel: Callable[..., Any]
    arguments: tuple[Any, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    view: bool

    @property
    def registered(self) -> Callable[..., Any]:
        """The kernel as it was registered, by which a fuser knows its own."""
        registered: Callable[..., Any] = getattr(self.kernel, "registered", self.kernel)
        return registered


@dataclass(frozen=True, slots=True)
class Region:
    """Steps that a fuser would do in one call.

    Attributes
    ----------
    steps : tuple of int
        Their numbers. What lies between two of them on the way of an array has to be in the region too.
    gain : float
        How many bytes fewer are read and written, about; of regions that overlap the higher gain is taken.
    """

    steps: tuple[int, ...]
    gain: float


@dataclass
class FusionProgram:
    """A program that fusers look at.

    Attributes
    ----------
    steps : list of FusionStep or None
        The calls in order; None for what cannot be fused.
    arrays : list of ArrayFacts
        By place.
    results : frozenset of int
        The places that the program returns.
    free : set of int
        The numbers of steps that no region has yet.
    mode : str
        What `tp.compile` was told as its mode.
    """

    steps: list[FusionStep | None]
    arrays: list[ArrayFacts]
    results: frozenset[int]
    values: Mapping[int, Any] = field(default_factory=dict[int, Any], repr=False)
    read: set[int] = field(default_factory=set[int])
    mode: str = "default"
    free: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self.free = {number for number, step in enumerate(self.steps) if step is not None}
        self._users: dict[int, list[int]] = {}
        self._makers: dict[int, int] = {}
        for number, step in enumerate(self.steps):
            if step is not None:
                for place in dict.fromkeys(step.inputs):
                    self._users.setdefault(place, []).append(number)
                for place in step.outputs:
                    self._makers[place] = number

    def users(self, place: int) -> Sequence[int]:
        """Return the numbers of the steps that take an array; those that are None are not among them."""
        return self._users.get(place, ())

    def maker(self, place: int) -> int | None:
        """Return the number of the step that makes an array; None for what goes in, and for other steps."""
        return self._makers.get(place)

    def constant(self, place: int) -> Any:
        """Return the value of an array of state; the region is compiled anew once that was written."""
        self.read.add(place)
        return self.values[place]


#: Takes the arrays that go into a region, returns new ones for what comes out of it; None if its kernels are
#: to run for these.
FusedCall = Callable[[Sequence[Any]], Sequence[Any] | None]


class Fuser(ABC):
    """Runs parts of programs on one device type in one call each.

    A plugin hands instances to ``tensorplug_fusers``.

    Attributes
    ----------
    name : str
        For messages.
    device_type : str
        Whose arrays it takes.
    priority : int
        The highest looks first.
    channels_last : bool
        Whether training is faster where images between convolutions lie channels last.
    """

    name: str
    device_type: str
    priority: int = 0
    channels_last: bool = False

    @abstractmethod
    def regions(self, program: FusionProgram) -> Iterable[Region]:
        """Return what it would take of the steps that are free."""

    @abstractmethod
    def compile(
        self,
        program: FusionProgram,
        region: Region,
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> FusedCall | None:
        """Return what computes a region, or None to leave it to the kernels.

        Parameters
        ----------
        program, region : FusionProgram, Region
        inputs, outputs : sequence of int
            The places of the arrays that the call gets, and of those that it returns, with the shapes and
            dtypes of ``program.arrays``: new memory, but where a step is a view.
        """


class QuarantinedFuser(NamedTuple):
    """A fuser that failed and is not asked any more.

    Attributes
    ----------
    name, plugin : str
    error : Exception
    """

    name: str
    plugin: str
    error: Exception


_quarantine: dict[Fuser, QuarantinedFuser] = {}


def quarantined_fusers() -> list[QuarantinedFuser]:
    """Return the fusers that failed, and are not used any more."""
    return list(_quarantine.values())


def quarantine(fuser: Fuser, plugin: str, error: Exception) -> None:
    """Set a fuser aside, and warn of it once."""
    if fuser in _quarantine:
        return
    name = str(getattr(fuser, "name", type(fuser).__name__))
    _quarantine[fuser] = QuarantinedFuser(name, plugin, error)
    warn(
        f"plugin {plugin}: the fuser {name!r} is not used any more, programs run kernel by kernel: "
        f"{type(error).__name__}: {error}; tp.plugins.quarantined_fusers() lists it",
        PluginWarning,
    )


def is_quarantined(fuser: Fuser) -> bool:
    """Return whether a fuser has failed."""
    return fuser in _quarantine


def forget(fusers: Iterable[Fuser]) -> None:
    """Forget the fusers of a plugin that goes."""
    for fuser in fusers:
        _quarantine.pop(fuser, None)
