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
x.exp(1)  # wrong: too many arguments
x.exq()  # wrong: no such method
