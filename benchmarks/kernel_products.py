"""The ops of the kernel suite that multiply: what they do is counted in operations, not in bytes."""

from collections.abc import Callable, Iterator
from typing import Any

from .kernel_work import Shape, Work, count, functional, images, square


def matrices(n: int) -> tuple[int, ...]:
    """Return the shape of a batch of matrices of 32 × 32."""
    return (1, 10, 10) if n < 10_000 else (n // 1024, 32, 32)


def features(n: int) -> tuple[int, ...]:
    """Return the shape of rows of 250 features."""
    return (2, 50) if n < 10_000 else (n // 250, 250)


def heads(n: int) -> tuple[int, ...]:
    """Return the shape of 125 tokens of 80 numbers, in several heads."""
    return (1, 1, 10, 10) if n < 10_000 else (1, n // 10_000, 125, 80)


def learned(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return forward and backward of a function of the library and several tensors."""

    def run(lib: Any, *tensors: Any) -> Any:
        leaves = [x.detach().requires_grad_() for x in tensors]
        result = function(lib, *leaves)
        result.backward(result.detach())
        return [leaf.grad for leaf in leaves]

    return run


def linear(lib: Any, x: Any, weight: Any) -> Any:
    return functional(lib).linear(x, weight, weight[0])


def convolution(lib: Any, x: Any, weight: Any) -> Any:
    return functional(lib).conv2d(x, weight, weight[:, 0, 0, 0], padding=1)


def by_channel(lib: Any, x: Any, weight: Any) -> Any:
    return functional(lib).conv2d(x, weight[:, :1], padding=1, groups=x.shape[1])


def transposed(lib: Any, x: Any, weight: Any) -> Any:
    return functional(lib).conv_transpose2d(x, weight, padding=1)


def attention(lib: Any, query: Any, key: Any, value: Any) -> Any:
    return functional(lib).scaled_dot_product_attention(query, key, value)


def products() -> Iterator[Work]:
    """Yield products of matrices, linear layers, convolutions and attention."""

    def side(n: int) -> tuple[int, ...]:
        return (square(n)[0],)

    def weight(n: int) -> tuple[int, ...]:
        return (features(n)[1],) * 2

    def windows(n: int) -> tuple[int, ...]:
        return (images(n)[1],) * 2 + (3, 3)

    def both(
        name: str, shape: Shape, function: Any, each: Callable[[int], float], **options: Any
    ) -> Iterator[Work]:
        """Yield forward, and forward with backward; `each` is the operations for an element."""
        for suffix, run, times in (("", function, 1), (" fw+bw", learned(function), 3)):
            yield Work(
                name + suffix,
                shape,
                run,
                0,
                operations=lambda n, times=times: times * each(n) * count(shape, n),
                **options,
            )

    yield Work(
        "matrix @ vector", square, lambda lib, a, b: a @ b, 1, others=(side,), tolerance=1e-2
    )
    yield from both(
        "matmul", square, lambda lib, a, b: a @ b, lambda n: 2 * square(n)[0], arguments=2
    )
    yield from both(
        "bmm of 32", matrices, lambda lib, a, b: a @ b, lambda n: 2 * matrices(n)[2], arguments=2
    )
    yield from both("linear", features, linear, lambda n: 2 * features(n)[1], others=(weight,))
    yield from both(
        "conv2d 3×3", images, convolution, lambda n: 18 * images(n)[1], others=(windows,)
    )
    yield from both("conv2d by channel", images, by_channel, lambda n: 18, others=(windows,))
    yield from both(
        "conv_transpose2d", images, transposed, lambda n: 18 * images(n)[1], others=(windows,)
    )
    yield from both("attention", heads, attention, lambda n: 4 * heads(n)[2], arguments=3)
