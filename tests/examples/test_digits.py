"""The example that learns handwritten digits, on a fraction of them."""

import struct

import numpy as np
import pytest
from matplotlib.image import imread

import tensorplug as tp
import train as example
from digits import load_digits, shift_randomly
from model import DigitNet
from picture import draw

DEVICE = "cpu"


@pytest.fixture(scope="module")
def digits():
    return load_digits(DEVICE)


@pytest.fixture(scope="module")
def trained(digits):
    few = digits._replace(
        train_images=digits.train_images[:400], train_labels=digits.train_labels[:400]
    )
    return example.train(few, epochs=4, seed=0, progress=False)


def test_data(digits):
    assert digits.train_images.shape == (1437, 1, 8, 8)
    assert digits.test_images.shape == (360, 1, 8, 8)
    assert digits.train_images.dtype == tp.float32
    assert digits.test_labels.dtype == tp.int64
    assert digits.train_images.min().item() == 0
    assert digits.train_images.max().item() == 1
    counts = np.bincount(digits.test_labels.cpu().numpy())
    assert counts.min() >= 34  # 17.4 % to 18.3 % of 1,797 would be 10 equal shares
    assert counts.max() <= 38


def test_data_is_the_same_each_time(digits):
    assert tp.equal(load_digits(DEVICE).test_labels, digits.test_labels)


def test_shifts_move_by_at_most_a_pixel(digits):
    tp.manual_seed(0)
    images = digits.train_images[:200]
    padded = np.pad(images.cpu().numpy(), ((0, 0), (0, 0), (2, 2), (2, 2)))
    seen = set()
    for image, wide in zip(shift_randomly(images).cpu().numpy(), padded, strict=True):
        shifts = [
            (row, column)
            for row in (1, 2, 3)
            for column in (1, 2, 3)
            if (wide[:, row : row + 8, column : column + 8] == image).all()
        ]
        assert shifts
        seen.update(shifts)
    assert len(seen) == 9


def test_few_epochs_on_few_digits_learn_something(trained):
    _, losses, accuracies = trained
    assert len(losses) == len(accuracies) == 4
    assert losses[-1] < losses[0] / 1.5
    assert accuracies[-1] > 0.6  # guessing gives 0.1


def test_same_seed_same_network(digits):
    few = digits._replace(
        train_images=digits.train_images[:64], train_labels=digits.train_labels[:64]
    )
    (one, *_), (other, *_) = (example.train(few, 1, seed=3, progress=False) for _ in range(2))
    for name, weights in one.state_dict().items():
        assert tp.equal(weights, other.state_dict()[name]), name


@pytest.mark.slow
def test_checkpoint_in_a_new_process(trained, digits, tmp_path, capfd):
    model, *_ = trained
    right = example.count_right(model, digits)
    path = tmp_path / "digits.pt"
    example.save(model, right, path)
    assert [file.name for file in tmp_path.iterdir()] == ["digits.pt"]
    assert example.evaluate_in_new_process(path, DEVICE)
    assert f"{right} of 360 test digits right" in capfd.readouterr().out


def test_checkpoint_with_another_score_is_noticed(trained, tmp_path, capsys):
    path = tmp_path / "digits.pt"
    example.save(trained[0], -1, path)
    assert not example.evaluate(path, DEVICE)
    assert "but -1 when it was saved" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [0, 3])
def test_picture(wrong, tmp_path, digits):
    images = digits.test_images.cpu().numpy()
    labels = digits.test_labels.cpu().numpy()
    predicted = labels.copy()
    predicted[-1 - np.arange(wrong)] = (labels[-1 - np.arange(wrong)] + 1) % 10
    path = tmp_path / "digits.png"
    draw(path, [2.0, 1.0, 0.5], [0.2, 0.5, 0.9], images, labels, predicted)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", content[16:24]) == (1440, 1080)
    assert len(content) > 20_000
    pixels = imread(path)[..., :3]
    red = (pixels[..., 0] > 0.9) & (pixels[..., 1:] < 0.1).all(axis=-1)
    assert (red.sum() > 1000) == (wrong > 0)


@pytest.mark.slow
def test_whole_program(tmp_path, capfd):
    out = tmp_path / "new" / "folder"
    assert example.main(["--epochs", "1", "--out", str(out), "--device", DEVICE]) == 0
    assert sorted(file.name for file in out.iterdir()) == ["digits.png", "digits.pt"]
    said = capfd.readouterr().out
    for expected in ("epoch   1", "as when it was saved", f"device         {DEVICE}", "accuracy"):
        assert expected in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "nonsense"], "nonsense"),
        (["--device", "cpu:x:y"], "cpu:x:y"),
        (["--device", "meta"], "meta"),
        (["--epochs", "0"], "--epochs must be at least 1, got 0"),
        (["--evaluate", "no/such/file"], "no/such/file"),
    ],
)
def test_bad_input_ends_with_a_message(arguments, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        example.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_file_that_is_no_checkpoint_is_said(capsys):
    assert example.main(["--evaluate", __file__]) == 2
    assert "test_digits.py is no checkpoint of this example: " in capsys.readouterr().err


def test_network_is_small():
    count = sum(weights.numel() for weights in DigitNet().parameters())
    assert count == 10_026
