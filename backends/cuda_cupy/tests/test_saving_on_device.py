"""Tensors that share memory of a device share it again when they are loaded, there or elsewhere."""

import io

import pytest
from on_device import needs_device

import tensorplug as tp

pytestmark = needs_device


def loaded(something, where=None, **options):
    file = io.BytesIO()
    tp.save(something, file, **options)
    size = file.tell()
    file.seek(0)
    return tp.load(file, map_location=where), size


@pytest.mark.parametrize("where", [None, "cpu", {"cuda:0": "cpu"}], ids=str)
@pytest.mark.parametrize("dtype", [tp.float32, tp.bfloat16, tp.bool, tp.complex64], ids=str)
@pytest.mark.parametrize("archive", [True, False])
def test_views_stay_views(where, dtype, archive):
    x = tp.arange(24, device="cuda").to(dtype)
    there = {"x": x, "row": x[4:10], "turned": x.view(4, 6).t(), "one": x[3], "none": x[:0]}
    found, _ = loaded(there, where, _use_new_zipfile_serialization=archive)
    for name, tensor in there.items():
        same = found[name]
        assert same.device.type == ("cuda" if where is None else "cpu")
        assert (same.dtype, same.stride()) == (dtype, tensor.stride())
        assert tp.equal(same.cpu(), tensor.cpu())
        if tensor.numel():
            assert same.storage_offset() == tensor.storage_offset()
            assert same.untyped_storage() == found["x"].untyped_storage()
    found["x"][4] = 0
    assert not found["row"][0]
    assert not found["turned"][4, 0]


def test_shared_weights_are_written_once():
    first, second = tp.nn.Linear(64, 64).cuda(), tp.nn.Linear(64, 64).cuda()
    _, apart = loaded(tp.nn.ModuleList([first, second]).state_dict())
    second.weight = first.weight
    found, together = loaded(tp.nn.ModuleList([first, second]).state_dict())
    assert together < apart - 64 * 64 * 4 + 500
    assert found["0.weight"].data_ptr() == found["1.weight"].data_ptr()
    storages = first.weight.detach().untyped_storage()
    found, _ = loaded([storages, first.weight.detach()])
    assert found[0].data_ptr() == found[1].data_ptr()
