"""What the conformance suite does not ask: the modules, memory, and transforms."""

import io
import tracemalloc

import numpy as np
import pytest
from tensorplug_quant import Int8Linear, kernels, linear_int8, quantize, quantize_weight
from tensorplug_quant.ops import _matmul_int8

import tensorplug as tp
from tensorplug import nn


@pytest.fixture(autouse=True)
def seed():
    tp.manual_seed(0)


class TestWeight:
    def test_is_within_half_a_step(self):
        weight = tp.randn(16, 32)
        steps, scale = quantize_weight(weight)
        assert steps.dtype == tp.int8
        assert steps.abs().amax(1).tolist() == [127] * 16
        error = (steps * scale.unsqueeze(1) - weight).abs()
        assert (error <= 0.5001 * scale.unsqueeze(1)).all()

    def test_rows_of_zeros_stay(self):
        steps, scale = quantize_weight(tp.zeros(2, 3))
        assert scale.tolist() == [1.0, 1.0]
        assert not steps.any()

    def test_without_columns(self):
        steps, scale = quantize_weight(tp.zeros(2, 0))
        assert (steps.shape, scale.tolist()) == ((2, 0), [1.0, 1.0])

    def test_halves_keep_their_dtype(self):
        steps, scale = quantize_weight(tp.randn(4, 8).half())
        assert (steps.dtype, scale.dtype) == (tp.int8, tp.float16)

    @pytest.mark.parametrize(
        ("weight", "error", "message"),
        [
            (tp.zeros(2, 2, dtype=tp.int8), TypeError, "floating point"),
            (tp.zeros(2), ValueError, "matrix"),
            (tp.tensor([[1.0, float("nan")]]), ValueError, "finite"),
        ],
    )
    def test_refuses(self, weight, error, message):
        with pytest.raises(error, match=message):
            quantize_weight(weight)


class TestModule:
    @pytest.mark.parametrize("bias", [True, False])
    def test_computes_nearly_what_the_float_layer_does(self, bias):
        layer = nn.Linear(64, 32, bias=bias)
        x = tp.randn(8, 64)
        tp.testing.assert_close(Int8Linear.from_float(layer)(x), layer(x), rtol=0, atol=0.02)

    def test_scale_and_bias_learn_and_the_weight_does_not(self):
        layer = Int8Linear.from_float(nn.Linear(6, 4))
        assert [name for name, _ in layer.named_parameters()] == ["scale", "bias"]
        assert [name for name, _ in layer.named_buffers()] == ["weight"]
        target = tp.randn(16, 4)
        x = tp.randn(16, 6)
        optimizer = tp.optim.Adam(layer.parameters(), lr=0.05)
        losses = []
        for _ in range(30):
            optimizer.zero_grad()
            loss = (layer(x) - target).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0]

    def test_the_float_layer_is_left_alone(self):
        layer = nn.Linear(3, 3)
        made = Int8Linear.from_float(layer)
        with tp.no_grad():
            made.bias.fill_(9.0)
        assert not (layer.bias == 9.0).any()

    def test_other_dtypes(self):
        layer = Int8Linear.from_float(nn.Linear(6, 4)).double()
        assert layer.weight.dtype == tp.int8
        assert layer(tp.randn(2, 6, dtype=tp.float64)).dtype == tp.float64


class TestQuantize:
    def model(self):
        return nn.Sequential(
            nn.Linear(8, 16),
            nn.ReLU(),
            nn.Sequential(nn.Linear(16, 16), nn.Tanh()),
            nn.Linear(16, 4),
        )

    def test_replaces_each_linear_layer(self):
        model = self.model()
        x = tp.randn(5, 8)
        before = model(x)
        assert quantize(model) is model
        kinds = [type(module).__name__ for module in model.modules()]
        assert kinds.count("Int8Linear") == 3
        assert "Linear" not in kinds
        tp.testing.assert_close(model(x), before, rtol=0, atol=0.02)

    def test_keeps_what_it_is_told_to(self):
        model = quantize(self.model(), keep={"3"})
        assert type(model[3]) is nn.Linear
        assert type(model[2][0]) is Int8Linear

    def test_a_shared_layer_stays_shared(self):
        shared = nn.Linear(4, 4)
        model = quantize(nn.Sequential(shared, shared))
        assert model[0] is model[1]
        assert type(model[0]) is Int8Linear

    def test_a_single_layer(self):
        assert type(quantize(nn.Linear(2, 2))) is Int8Linear

    def test_subclasses_stay(self):
        attention = quantize(nn.MultiheadAttention(4, 2))
        assert not any(isinstance(module, Int8Linear) for module in attention.modules())

    def test_state_dict_through_a_file(self):
        model = quantize(self.model())
        file = io.BytesIO()
        tp.save(model.state_dict(), file)
        file.seek(0)
        tp.manual_seed(1)
        other = quantize(self.model())
        other.load_state_dict(tp.load(file, weights_only=True))
        x = tp.randn(5, 8)
        assert tp.equal(model(x), other(x))
        assert other[0].weight.dtype == tp.int8

    def test_takes_a_quarter_of_the_memory(self):
        layer = nn.Linear(256, 256)
        full = sum(value.nbytes for value in layer.state_dict().values())
        small = sum(value.nbytes for value in quantize(layer).state_dict().values())
        assert small < 0.27 * full


class TestKernel:
    @pytest.mark.parametrize("stored", ["rows", "columns"])
    def test_many_blocks(self, stored, monkeypatch):
        monkeypatch.setattr(kernels, "BLOCK", 1)  # 16 columns at a time
        weight = np.random.default_rng(0).integers(-127, 128, (37, 53), np.int8)
        weight = weight if stored == "rows" else np.asfortranarray(weight)
        x = np.random.default_rng(1).normal(size=(3, 37))
        np.testing.assert_allclose(kernels.matmul_int8(x, weight), x @ weight.astype(float))

    def test_the_weight_is_never_whole_in_floating_point(self):
        """Its body needs 4 bytes for each byte of the weight; the kernel one block."""
        weight, x = tp.ones(2048, 2048, dtype=tp.int8), tp.ones(1, 2048)
        _matmul_int8(x, weight)
        tracemalloc.start()
        _matmul_int8(x, weight)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < weight.nbytes

    def test_it_is_what_runs(self):
        assert tp.explain("quant._matmul_int8").kernel.plugin == "quant"
        assert tp.explain("quant._matmul_int8", dtype=tp.float16).way == "decomposition"


class TestDerivatives:
    def arguments(self):
        weight = tp.randint(-9, 9, (5, 4), dtype=tp.int8)
        floats = [
            tp.randn(*shape, dtype=tp.float64, requires_grad=True) for shape in ((3, 4), (5,), (5,))
        ]
        return weight, floats

    def test_input_scale_and_bias(self):
        weight, floats = self.arguments()
        called = lambda x, scale, bias: linear_int8(x, weight, scale, bias)  # noqa: E731
        assert tp.autograd.gradcheck(called, floats, check_forward_ad=True, check_batched_grad=True)
        assert tp.autograd.gradgradcheck(called, floats)

    def test_the_product_is_one_node(self):
        weight, (x, _, _) = self.arguments()
        assert _matmul_int8(x, weight.t()).grad_fn.name() == "MatmulInt8Backward0"

    @pytest.mark.parametrize("in_dims", [(0, None), (None, 0), (1, 1), (0, 2)])
    def test_vmap(self, in_dims):
        x = tp.randn(4, 6) if in_dims[0] is None else tp.randn(3, 4, 6).movedim(0, in_dims[0])
        weight = tp.randint(-9, 9, (3, 6, 5), dtype=tp.int8)
        weight = weight[0] if in_dims[1] is None else weight.movedim(0, in_dims[1])
        found = tp.func.vmap(_matmul_int8, in_dims)(x, weight)
        each = [
            _matmul_int8(
                x if in_dims[0] is None else x.select(in_dims[0], n),
                weight if in_dims[1] is None else weight.select(in_dims[1], n),
            )
            for n in range(3)
        ]
        tp.testing.assert_close(found, tp.stack(each))
