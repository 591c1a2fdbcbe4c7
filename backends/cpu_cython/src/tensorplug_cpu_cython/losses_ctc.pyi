from typing import Any

def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: tuple[int, ...],
    target_lengths: tuple[int, ...],
    blank: int,
    reduction: str,
    zero_infinity: bool,
) -> Any: ...
def ctc_loss_backward(
    g: Any,
    log_probs: Any,
    targets: Any,
    input_lengths: tuple[int, ...],
    target_lengths: tuple[int, ...],
    blank: int,
    reduction: str,
) -> Any: ...
