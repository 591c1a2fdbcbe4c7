"""What notebooks and editors ask for: HTML, completion, the configuration."""

import importlib
import pkgutil
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

import tensorplug as tp
from tensorplug import nn


class Balanced(HTMLParser):
    """Collects the text, and refuses tags that are not closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.text = [], ""
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_tensors():
    x = tp.ones(2, 3, requires_grad=True) * 2
    text = Balanced(x._repr_html_()).text
    assert text == repr(x) + "shape [2, 3], float32, cpu"  # with <MulBackward0> escaped
    assert "shape [7], int64, meta" in tp.empty(7, dtype=tp.int64, device="meta")._repr_html_()


@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_modules():
    model = nn.Sequential(
        nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.LazyLinear(3)), nn.Dropout(0.1)
    )
    page = model._repr_html_()
    text = Balanced(page).text
    assert "0 Linear(in_features=2, out_features=3, bias=True) 9 parameters" in text
    assert "1 ReLU()" not in text
    assert page.count("<details") == 2
    assert page.count(" open>") == 1


def test_summaries():
    assert "Linear" in Balanced(tp.utils.summary(nn.Linear(2, 3), (1, 2))._repr_html_()).text


def modules():
    yield tp
    for found in pkgutil.walk_packages(tp.__path__, "tensorplug."):
        if not re.search(r"\.(cli|__main__|conformance|tensorboard)\b", found.name):
            yield importlib.import_module(found.name)


def test_what_a_module_lists_can_be_completed():
    missing = {}
    for module in modules():
        names = set(getattr(module, "__all__", ())) - set(dir(module))
        if names:
            missing[module.__name__] = names
    assert not missing


def test_what_is_completed_is_there():
    assert not [name for name in dir(tp) if not hasattr(tp, name) and name != "newaxis"]
    for module in (tp.nn, tp.autograd, tp.autograd.graph, tp.optim, tp.plugin, tp.cpu, tp.cuda):
        absent = [
            name for name in dir(module) if not name.startswith("__") and not hasattr(module, name)
        ]
        assert not absent, module


@pytest.mark.parametrize("module", [tp.cpu, tp.cuda], ids=["cpu", "cuda"])
def test_functions_of_device_types_are_completed(module):
    assert {"is_available", "synchronize", "manual_seed", "FloatTensor"} <= set(dir(module))
    assert {"GradScaler", "autocast"} <= set(dir(module.amp))


def test_parts_of_a_model_are_completed():
    model = nn.Sequential()
    model.add_module("body", nn.Linear(2, 2))
    assert "body" in dir(model)
    assert "weight" in dir(model.body)


def test_configuration(capsys):
    tp.show_config()
    told = capsys.readouterr().out
    assert told.strip() == tp.__config__.show()
    assert re.match(r"tensorplug \S+, hot path (not )?compiled\nPython 3\.", told)
    assert "cpu.numpy of tensorplug" in told
    assert tp.__config__.parallel_info() in told
    assert f"threads: {tp.get_num_threads()} of" in told


def test_nothing_of_it_is_imported_with_tensorplug():
    program = (
        "import sys, tensorplug; dir(tensorplug)\n"
        "new = {'tensorplug.utils', 'tensorplug.utils.model_summary', 'tensorplug.__config__',\n"
        "       'tensorplug.nn.notebook', 'tensorboardX', 'tensorplug.utils.tensorboard'}\n"
        "print(sorted(new & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
