"""A program that type checkers read: what they must find, and what they must refuse (marked)."""

from typing import assert_type

import tensorplug as tp
from tensorplug import Tensor

x = tp.tensor([1.0, 2.0], requires_grad=True)
assert_type(x, Tensor)
assert_type(x.exp(), Tensor)
assert_type(x.add(2), Tensor)
assert_type(x.add_(x, alpha=2), Tensor)
assert_type(x.sum(0, keepdim=True), Tensor)
assert_type(x.reshape(1, 2), Tensor)
assert_type(x.uniform_(0, 1), Tensor)
assert_type(tp.zeros(2, 3, dtype=tp.float64), Tensor)
assert_type(tp.exp(x), Tensor)
assert_type(tp.linalg.det(tp.eye(2)), Tensor)
assert_type(x.shape, tp.Size)
summary = tp.utils.summary(tp.nn.Linear(2, 3), (1, 2))
assert_type(summary.multiply_adds, int)
assert_type(tp.__config__.show(), str)
tp.show_config()
assert_type(x.max(), Tensor)
assert_type(x.max(0), tp.return_types.max)
assert_type(x.max(0).values, Tensor)
assert_type(tp.min(x, x), Tensor)
assert_type(tp.median(x, 0, True).indices, Tensor)
assert_type(x.item(), int | float | bool)
for row in x:
    assert_type(row, Tensor)
assert_type(tp.relu_(x), Tensor)


@tp.no_grad()
def halve(value: Tensor, times: int = 1) -> Tensor:
    return value / 2**times


@tp.inference_mode()
def lines(text: str) -> list[str]:
    return text.splitlines()


assert_type(halve(x, times=2), Tensor)
assert_type(lines("a"), list[str])
halve(x, 1, 2)  # wrong: too many arguments
halve("x")  # wrong: no tensor
lines(1)  # wrong: no text
print(x.max(0).places)  # wrong: values and indices
tp.summ(x)  # wrong: no such function
tp.nn.Linea(2, 3)  # wrong: no such module
tp.optim.Adamm([x])  # wrong: no such optimizer
tp.nn.functional.reluu(x)  # wrong: no such function
tp.linalg.solvee(x, x)  # wrong: no such function
tp.nn.Linear("2", 3)  # wrong: no number
tp.sum(x, dim="0")  # wrong: no dimension
tp.zeros(2, dtype="float")  # wrong: no dtype
x.exp(1)  # wrong: too many arguments
x.exq()  # wrong: no such method
