"""Numbers that fill a cube more evenly than random ones, as torch.quasirandom has them."""

from __future__ import annotations

import warnings
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import DType, get_default_dtype
from tensorplug.core.tensor.host import from_numpy

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws the points of a Sobol sequence, in the unit cube of up to 21201 dimensions.

    The direction numbers are those of Joe and Kuo (2008), by SciPy's ``scipy.stats.qmc.Sobol``:
    points that are not scrambled are torch's. Scrambling follows the same method (Matousek 1998)
    with other random numbers.

    Parameters
    ----------
    dimension : int
        How many coordinates a point has.
    scramble : bool, default False
        Whether to scramble the digits of the coordinates.
    seed : int, optional
        The seed of the scrambling; by default one is drawn.

    Raises
    ------
    ValueError
        If the dimension is not between 1 and 21201.

    Examples
    --------
    >>> from tensorplug.quasirandom import SobolEngine
    >>> SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], got {dimension}"
            )
        from scipy.stats.qmc import Sobol  # takes its time, and is rarely needed

        self.dimension = dimension
        self.scramble = scramble
        self.seed = seed
        self._sequence: Any = Sobol(dimension, scramble=scramble, bits=self.MAXBIT, rng=seed)

    @property
    def num_generated(self) -> int:
        """How many points were drawn, or passed over."""
        count: int = self._sequence.num_generated
        return count

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """Return the next `n` points, ``(n, dimension)``, on the CPU.

        Parameters
        ----------
        n : int, default 1
            How many.
        out : Tensor, optional
            What to fill with them.
        dtype : DType, optional
            A floating-point dtype; the default dtype if none is given.
        """
        with warnings.catch_warnings():
            # It warns that any number but a power of two is less even, as torch does.
            warnings.simplefilter("ignore", UserWarning)
            points = from_numpy(self._sequence.random(n)).to(dtype or get_default_dtype())
        return points if out is None else out.resize_(points.shape).copy_(points)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """Return the next ``2**m`` points; with those drawn before they must be a power of two.

        Raises
        ------
        ValueError
            If they are not.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Begin anew with the first point."""
        self._sequence.reset()
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Pass over `n` points."""
        self._sequence.fast_forward(n)
        return self

    def __repr__(self) -> str:
        told = [f"dimension={self.dimension}"]
        if self.scramble:
            told.append("scramble=True")
        if self.seed is not None:
            told.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(told)})"
