"""Scaling of losses, so that small gradients do not vanish in half precision."""

from __future__ import annotations

import enum
import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, cast

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import float16, float32, float64, int32
from tensorplug.core.ops import full

from .autocast_mode import is_autocast_available
from .layer import type_of
from .ops.amp import unscale, update_scale


class OptState(enum.Enum):
    """How far an optimizer is in the present step."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """Return what the scaler knows of an optimizer at the beginning of a step; torch's name and form.

    By device it holds whether a gradient there was infinite or NaN.
    """
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales the loss up before the backward pass, and the gradients down again before the step.

    A step whose gradients are infinite or NaN is skipped, and the scale lowered; after many steps in a row
    that were taken, it grows.

    Parameters
    ----------
    device : str, optional
        The device type that it serves. If none can be used here, the scaler is off, with a warning. None, the
        default, is any: the scaler works where the tensors are.
    init_scale : float
        The scale to begin with.
    growth_factor, backoff_factor : float
        By what it is multiplied to raise or lower it.
    growth_interval : int
        After how many steps in a row it grows.
    enabled : bool
        False makes every method pass on what it gets, so that a program needs no other branch.

    Raises
    ------
    AssertionError
        If growth would not raise the scale, or backing off not lower it. (This and the following are
        the exceptions that torch raises.)

    Notes
    -----
    Micikevicius et al., "Mixed Precision Training", 2018. What was found in the gradients is read by the host
    once a step, in :meth:`step`; everything else stays on the device. SGD, Adam and AdamW with ``fused=True``
    look themselves, on the device, so that nothing waits.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([2.0], requires_grad=True)
    >>> optimizer = tp.optim.SGD([x], lr=0.25)
    >>> scaler = tp.amp.GradScaler(init_scale=1024.0)
    >>> scaler.scale(x.square().sum()).backward()
    >>> x.grad
    tensor([4096.])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> x
    tensor([1.], requires_grad=True)
    """

    def __init__(
        self,
        device: str | None = None,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = None if device is None else type_of(device)
        self._enabled = enabled
        if enabled and self._device is not None and not is_autocast_available(self._device):
            warnings.warn(
                f"GradScaler is off: no device of type {self._device!r} can be used here",
                UserWarning,
                stacklevel=2,
            )
            self._enabled = False
        if self._enabled:
            if growth_factor <= 1.0:
                raise AssertionError(f"The growth factor must be > 1.0, got {growth_factor}")
            if backoff_factor >= 1.0:
                raise AssertionError(f"The backoff factor must be < 1.0, got {backoff_factor}")
        self._init_scale = init_scale
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        # Both are made on the device of the first tensor that is scaled.
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: defaultdict[int, dict[str, Any]] = defaultdict(
            _refresh_per_optimizer_state
        )

    # --- the steps of a training step ---

    def scale(self, outputs: Any) -> Any:
        """Multiply a tensor, or each in nested iterables, by the scale.

        Raises
        ------
        ValueError
            If there is something else in them.
        """
        if not self._enabled:
            return outputs
        copies: dict[Device, Tensor] = {}
        return self._scaled(outputs, copies)

    def _scaled(self, outputs: Any, copies: dict[Device, Tensor]) -> Any:
        if isinstance(outputs, Tensor):
            scale = self._started(outputs.device)
            if outputs.device not in copies:
                copies[outputs.device] = scale.to(outputs.device)
            return outputs * copies[outputs.device]
        if isinstance(outputs, Iterable) and not isinstance(outputs, (str, bytes)):
            scaled = [self._scaled(item, copies) for item in outputs]
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError(
            f"outputs must be a Tensor or an iterable of Tensors, got {type(outputs).__name__}"
        )

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, as clipping them needs.

        :meth:`step` does it otherwise.

        Raises
        ------
        RuntimeError
            If it was done already since the last :meth:`update`, or :meth:`step` was.
        ValueError
            If a gradient is of float16: the parameters are to be kept in float32.
        """
        if not self._enabled:
            return
        self._check_started("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        with no_grad():
            scale = self._scale_tensor()
            inverse = scale.to(float64).reciprocal().to(float32)
            found = full((), 0.0, dtype=float32, device=scale.device)
            state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found, False)
        state["stage"] = OptState.UNSCALED

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Device, Tensor]:
        """Multiply the gradients by a number; return whether one was not finite, by device.

        Of torch's name: programs replace it, to keep parameters in float16.
        """
        by_kind: dict[Any, list[Tensor]] = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad
                if gradient is None:
                    continue
                if gradient.dtype is float16:
                    if not allow_fp16:
                        raise ValueError(
                            "Attempting to unscale FP16 gradients: keep the parameters in float32, and have "
                            "autocast convert them"
                        )
                    if gradient.is_sparse:  # what is added up may overflow
                        parameter.grad = gradient.coalesce()
                        gradient = parameter.grad
                if gradient.is_sparse:
                    gradient = gradient._values()
                by_kind.setdefault((gradient.device, gradient.dtype), []).append(gradient)
        found: dict[Device, Tensor] = {}
        inverses: dict[Device, Tensor] = {}
        with no_grad():
            for (device, _), gradients in by_kind.items():
                if device not in found:
                    found[device] = found_inf.to(device)
                    inverses[device] = inv_scale.to(device)
                unscale(gradients, found[device], inverses[device])
        return found

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Call ``optimizer.step(*args, **kwargs)`` unless a gradient is infinite or NaN.

        An optimizer that sets ``_step_supports_amp_scaling`` is always called. It finds the scale that it is
        to divide gradients by in its attribute ``grad_scale``, None if they were divided, and whether to skip
        the step in ``found_inf``; or, as older ones do, takes the scaler as ``step(grad_scaler=…)``.

        Raises
        ------
        RuntimeError
            With a closure, which would have to scale; or if it was called since the last :meth:`update`.
        AssertionError
            If the optimizer has no gradients, or nothing was scaled so far.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs or args:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_started("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        own = getattr(optimizer, "_skips_on_device", False)
        on_device = getattr(optimizer, "_step_supports_amp_scaling", False)
        if on_device and not own:
            result = self._step_of_other(optimizer, state, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not state["found_inf_per_device"]:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            if on_device:
                optimizer._found_inf = state["found_inf_per_device"]
                try:
                    result = optimizer.step(**kwargs)
                finally:
                    optimizer._found_inf = None
            else:
                result = self._maybe_opt_step(optimizer, state, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(
        self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Have an optimizer step unless a gradient was not finite; of torch's name, to be overridden."""
        if any(found.item() for found in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _step_of_other(self, optimizer: Any, state: dict[str, Any], kwargs: dict[str, Any]) -> Any:
        """Have an optimizer step that looks at scale and gradients itself, by torch's protocol."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer; "
                "it sets `grad_scale` and `found_inf` of one whose step() has no `grad_scaler`",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(**kwargs, grad_scaler=self)
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        with no_grad():
            scale = self._scale_tensor()
            found = [each.to(scale.device) for each in state["found_inf_per_device"].values()]
            # An optimizer may have a scale of its own.
            if state["stage"] is OptState.UNSCALED:
                optimizer.grad_scale = getattr(optimizer, "grad_scale", None)
            else:
                optimizer.grad_scale = scale * getattr(optimizer, "grad_scale", 1)
            optimizer.found_inf = sum(found[1:], found[0]) if found else 0
        try:
            return optimizer.step(**kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale; call it once per step, after :meth:`step` of all optimizers.

        Parameters
        ----------
        new_scale : float or Tensor, optional
            Set the scale to this instead; a tensor holds one element and requires no grad.
        """
        if not self._enabled:
            return
        self._check_started("update")
        scale, tracker = self._scale_tensor(), cast(Tensor, self._growth_tracker)
        with no_grad():
            if new_scale is not None:
                if isinstance(new_scale, Tensor):
                    if new_scale.numel() != 1 or new_scale.requires_grad:
                        raise AssertionError(
                            "new_scale should be a float or a 1-element tensor with "
                            "requires_grad=False"
                        )
                    new_scale = new_scale.reshape(())
                    scale.copy_(new_scale)
                else:
                    scale.fill_(new_scale)
            else:
                found: list[Tensor] = [
                    each.to(scale.device)
                    for state in self._per_optimizer_states.values()
                    for each in state["found_inf_per_device"].values()
                ]
                if not found:
                    raise AssertionError("No inf checks were recorded prior to update.")
                update_scale(
                    scale,
                    tracker,
                    sum(found[1:], found[0]),
                    self._growth_factor,
                    self._backoff_factor,
                    self._growth_interval,
                )
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    # --- the scale ---

    def _started(self, device: Device) -> Tensor:
        if self._scale is None:
            self._scale = full((), self._init_scale, dtype=float32, device=device)
            self._growth_tracker = full((), self._init_growth_tracker, dtype=int32, device=device)
        return self._scale

    def _check_started(self, name: str) -> None:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {name} but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )

    def _scale_tensor(self) -> Tensor:
        return cast(Tensor, self._scale)

    def get_scale(self) -> float:
        """Return the scale, 1.0 if the scaler is off; reading it waits for the device."""
        if not self._enabled:
            return 1.0
        return float(self._init_scale if self._scale is None else self._scale.item())

    def get_growth_factor(self) -> float:
        """Return by what the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set by what the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return by what the scale is multiplied after a step that was skipped."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set by what the scale is multiplied after a step that was skipped."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return after how many steps in a row the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many steps in a row the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        if self._growth_tracker is None:
            return self._init_growth_tracker
        return int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Return whether the scaler does anything."""
        return self._enabled

    # --- checkpoints ---

    def state_dict(self) -> dict[str, Any]:
        """Return scale, factors and count as plain numbers; an empty dict if the scaler is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned.

        Raises
        ------
        RuntimeError
            If it is empty, which is what a scaler that is off gives.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            with no_grad():
                self._scale.fill_(self._init_scale)
                self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at "
                    "the end after scaler.update()."
                )
            # On another machine the device may be another.
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        state["_per_optimizer_states"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _check_inf_per_device(self, optimizer: Any) -> dict[Device, Tensor]:
        """Look for infinities without unscaling; as torch's method of this name, for tests."""
        self._check_started("_check_inf_per_device")
        with no_grad():
            device = self._scale_tensor().device
            one = full((), 1.0, dtype=float32, device=device)
            found = self._unscale_grads_(
                optimizer, one, full((), 0.0, dtype=float32, device=device), True
            )
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found
