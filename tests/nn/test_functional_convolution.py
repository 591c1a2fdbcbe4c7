@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    ("length", "kernel", "stride", "padding"), [(1, 2, 1, 1), (2, 3, 1, 2), (2, 2, 2, 2)]
)
def test_transposed_convolutions_may_leave_nothing(rank, length, kernel, stride, padding):
    x = tp.rand(2, 4, *[length] * rank, requires_grad=True)
    weight = tp.rand(4, 3, *[kernel] * rank, requires_grad=True)
    bias = tp.rand(3, requires_grad=True)
    function = getattr(tp.nn.functional, f"conv_transpose{rank}d")
    result = function(x, weight, bias, stride=stride, padding=padding)
    assert result.shape == (2, 3, *[0] * rank)
    result.sum().backward()
    for tensor in (x, weight, bias):
        assert tensor.grad.shape == tensor.shape
        assert not tensor.grad.any()
    with pytest.raises(RuntimeError, match="too small"):
        function(x, weight, bias, stride=stride, padding=padding + 1)
