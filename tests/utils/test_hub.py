"""Models of repositories and state dicts by address, from files and a server of this process."""

import hashlib
import http.server
import threading

import pytest

import tensorplug as tp


@pytest.fixture
def hub(tmp_path):
    before = tp.hub.get_dir()
    tp.hub.set_dir(tmp_path / "hub")
    yield tp.hub
    tp.hub.set_dir(before)


@pytest.fixture
def served(tmp_path):
    """A folder and the address at which it is served."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_state_dict_by_address(hub, served, capsys):
    folder, address = served
    tp.save({"w": tp.ones(2)}, folder / "model.pt")
    digest = hashlib.sha256((folder / "model.pt").read_bytes()).hexdigest()
    (folder / "model.pt").rename(folder / f"model-{digest[:8]}.pt")
    url = f"{address}/model-{digest[:8]}.pt"
    for _ in range(2):
        found = hub.load_state_dict_from_url(url, progress=False, check_hash=True)
        assert found["w"].tolist() == [1.0, 1.0]
    assert capsys.readouterr().err.count("Downloading") == 1
    (folder / "bad-00000000.pt").write_bytes(b"other")
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.load_state_dict_from_url(f"{address}/bad-00000000.pt", progress=False, check_hash=True)
    kept = [path.name for path in (served[0].parent / "hub" / "checkpoints").iterdir()]
    assert kept == [f"model-{digest[:8]}.pt"]


HUBCONF = '''
"""Entry points."""
dependencies = ["math", "numpy"]
from parts import SIZE


def linear(width=1, **options):
    """Return a linear layer."""
    import tensorplug as tp
    return tp.nn.Linear(SIZE, width, **options)


def _private():
    pass
'''


def test_a_model_of_a_folder(hub, tmp_path, monkeypatch):
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "hubconf.py").write_text(HUBCONF)
    (repository / "parts.py").write_text("SIZE = 3\n")
    monkeypatch.delitem(__import__("sys").modules, "parts", raising=False)
    model = hub.load(str(repository), "linear", 2, source="local", bias=False)
    monkeypatch.delitem(__import__("sys").modules, "parts")
    assert model.weight.shape == (2, 3)
    with pytest.raises(RuntimeError, match="Cannot find callable nothing"):
        hub.load(str(repository), "nothing", source="local")
    monkeypatch.delitem(__import__("sys").modules, "parts")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(str(repository), "linear", source="elsewhere")


def test_a_repository_is_trusted_once(hub, tmp_path, monkeypatch):
    kept = tmp_path / "hub" / "owner_name_main"
    with pytest.raises(ValueError, match="owner/name"):
        hub.load("nothing", "linear")
    kept.mkdir(parents=True)
    (kept / "hubconf.py").write_text(HUBCONF.replace("from parts import SIZE", "SIZE = 3"))
    assert hub.list("owner/name:main", verbose=False) == ["linear"]  # what is there is trusted
    monkeypatch.setattr("builtins.input", lambda text: "n")
    with pytest.raises(RuntimeError, match="is not trusted"):
        hub.load("owner/name:main", "linear", trust_repo=False)
    monkeypatch.setattr("builtins.input", lambda text: "y")
    assert hub.help("owner/name:main", "linear", trust_repo=False) == "Return a linear layer."
    monkeypatch.undo()
    assert hub.load("owner/name:main", "linear", trust_repo=False).in_features == 3
