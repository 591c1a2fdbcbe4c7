"""Models and state dicts from the network, kept in a folder of the user's cache.

A model is a function in a repository's ``hubconf.py``. Running it is running that repository's code: the
first time :func:`load` asks, unless it is told to trust the repository.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
import warnings
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

from tensorplug.serialization import load as _load_file

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

#: What a file's name says of its SHA-256, as in ``resnet18-bfd8deac.pth``.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
CHUNK = 1 << 17
_TRUSTED = "trusted_list"

_dir: str | None = None


def _get_torch_home() -> str:
    """Return the folder of cached files: that of $TORCH_HOME, or one in the user's cache."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))  # noqa: PTH111, PTH118


def get_dir() -> str:
    """Return the folder in which models and weights are kept.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from pathlib import Path
    >>> before = tp.hub.get_dir()
    >>> tp.hub.set_dir("models")
    >>> tp.hub.get_dir()
    'models'
    >>> tp.hub.set_dir(before)
    """
    return str(Path(_get_torch_home()) / "hub") if _dir is None else _dir


def set_dir(d: str | os.PathLike[str]) -> None:
    """Keep models and weights in another folder from now on."""
    global _dir
    _dir = os.path.expanduser(d)  # noqa: PTH111


# --- files ---


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Download a file; what is there already is replaced once all of it has come.

    Parameters
    ----------
    url : str
        Where it is.
    dst : str
        Where it goes.
    hash_prefix : str, optional
        What its SHA-256 has to begin with.
    progress : bool
        Whether to show a bar, where tqdm is installed.

    Raises
    ------
    RuntimeError
        If the SHA-256 is another.
    """
    target = Path(dst).expanduser()
    request = urllib.request.Request(url, headers={"User-Agent": "tensorplug.hub"})
    handle, part = tempfile.mkstemp(prefix=f"{target.name}.", suffix=".partial", dir=target.parent)
    digest = hashlib.sha256()
    try:
        with urllib.request.urlopen(request) as source, os.fdopen(handle, "wb") as file:
            size = source.headers.get("Content-Length")
            with _bar(int(size) if size else None, progress) as show:
                while data := source.read(CHUNK):
                    file.write(data)
                    digest.update(data)
                    show(len(data))
        if hash_prefix and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(
                f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")'
            )
        shutil.move(part, target)
    finally:
        Path(part).unlink(missing_ok=True)


@contextmanager
def _bar(size: int | None, progress: bool) -> Generator[Callable[[int], object], None, None]:
    if progress and importlib.util.find_spec("tqdm"):
        tqdm = importlib.import_module("tqdm")
        with tqdm.tqdm(total=size, unit="B", unit_scale=True, unit_divisor=1024) as bar:
            yield bar.update
    else:
        yield lambda _: None


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """Load what :func:`tensorplug.save` or torch wrote, from the network the first time.

    Parameters
    ----------
    url : str
        Where it is.
    model_dir : str, optional
        Where it is kept; by default ``checkpoints`` in :func:`get_dir`.
    map_location
        As :func:`tensorplug.load` takes it.
    progress : bool
        Whether to show a bar.
    check_hash : bool
        Whether the file's name, as in ``resnet18-bfd8deac.pth``, says what its SHA-256 begins with.
    file_name : str, optional
        What it is kept as, if not by the name in `url`.
    weights_only : bool
        As :func:`tensorplug.load` takes it. torch's default is False here; this one is the safe one.
    """
    folder = Path(model_dir or Path(get_dir()) / "checkpoints")
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name or Path(urlparse(url).path).name
    cached = folder / name
    if not cached.exists():
        sys.stderr.write(f'Downloading: "{url}" to {cached}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, str(cached), found[1] if found else None, progress)
    if zipfile.is_zipfile(cached) and _is_plain_archive(cached):
        cached = _only_member(cached, folder)
    return _load_file(cached, map_location=map_location, weights_only=weights_only)


def _is_plain_archive(path: Path) -> bool:
    """Return whether a zip file holds one file, and is not itself what `save` wrote."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    return len(members) == 1 and not members[0].filename.endswith("data.pkl")


def _only_member(path: Path, folder: Path) -> Path:
    with zipfile.ZipFile(path) as archive:
        return Path(archive.extract(archive.infolist()[0], folder))


# --- repositories ---


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str | None = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,  # noqa: ARG001
    **kwargs: Any,
) -> Any:
    """Call a function of a repository's ``hubconf.py``, and return what it returns.

    Parameters
    ----------
    repo_or_dir : str
        ``"owner/name"`` or ``"owner/name:branch"``; or a folder, with ``source="local"``.
    model : str
        The function.
    source : {"github", "local"}
        Where the repository is.
    trust_repo : bool or "check"
        Whether to run its code. "check" asks the first time.
    force_reload : bool
        Whether to fetch it even if it is there.
    verbose : bool
        Whether to say what is done.
    *args, **kwargs
        Handed to the function.

    Raises
    ------
    ValueError
        If `source` is another.
    RuntimeError
        If the function, or something that it says it needs, is not there.
    """
    kind = source.lower()
    if kind not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = Path(repo_or_dir)
    if kind == "github":
        folder = _fetched(repo_or_dir, trust_repo, force_reload, verbose)
    with _hubconf(folder) as module:
        return _entry(module, model)(*args, **kwargs)


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,  # noqa: ARG001
    trust_repo: bool | str | None = "check",
    verbose: bool = True,
) -> Any:
    """Return the names of the functions that a repository's ``hubconf.py`` offers."""
    with _hubconf(_fetched(github, trust_repo, force_reload, verbose)) as module:
        return [name for name, value in vars(module).items() if _is_entry(name, value)]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,  # noqa: ARG001
    trust_repo: bool | str | None = "check",
) -> str | None:
    """Return the docstring of a function of a repository's ``hubconf.py``."""
    with _hubconf(_fetched(github, trust_repo, force_reload, True)) as module:
        text: str | None = _entry(module, model).__doc__
        return text


def _is_entry(name: str, value: Any) -> bool:
    return callable(value) and not name.startswith("_")


def _entry(module: ModuleType, name: str) -> Any:
    needed = [
        package
        for package in getattr(module, "dependencies", ())
        if importlib.util.find_spec(package) is None
    ]
    if needed:
        raise RuntimeError(f"Missing dependencies: {', '.join(needed)}")
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


@contextmanager
def _hubconf(folder: Path) -> Generator[ModuleType, None, None]:
    """Import a repository's ``hubconf.py``, with its folder on the path within the block."""
    spec = importlib.util.spec_from_file_location("hubconf", folder / "hubconf.py")
    if spec is None or spec.loader is None:
        raise RuntimeError(f"no hubconf.py can be imported from {folder}")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(folder))


def _fetched(github: str, trust_repo: bool | str | None, force_reload: bool, verbose: bool) -> Path:
    """Return the folder of a repository, fetched if it is not there."""
    name, _, ref = github.partition(":")
    owner, _, repository = name.partition("/")
    if not repository:
        raise ValueError(f'hub: expected "owner/name" or "owner/name:branch", got {github!r}')
    root = Path(get_dir())
    root.mkdir(parents=True, exist_ok=True)
    branches = [ref] if ref else ["main", "master"]
    kept = [root / "_".join([owner, repository, branch.replace("/", "_")]) for branch in branches]
    there = [folder for folder in kept if folder.exists()]
    _check_trust(owner, repository, root, trust_repo, known=bool(there))
    if there and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {there[0]}\n")
        return there[0]
    for branch, folder in zip(branches, kept, strict=True):
        url = f"https://github.com/{owner}/{repository}/zipball/{branch}"
        try:
            with tempfile.TemporaryDirectory(dir=root) as temporary:
                archive = Path(temporary) / "archive.zip"
                download_url_to_file(url, str(archive), progress=False)
                with zipfile.ZipFile(archive) as packed:
                    packed.extractall(temporary)
                    top = packed.infolist()[0].filename.partition("/")[0]
                shutil.rmtree(folder, ignore_errors=True)
                shutil.move(Path(temporary) / top, folder)
        except urllib.error.HTTPError as error:
            if error.code != 404 or branch == branches[-1]:
                raise
        else:
            return folder
    raise RuntimeError(f"hub: {github} has none of the branches {branches}")  # pragma: no cover


def _check_trust(
    owner: str, repository: str, root: Path, trust_repo: bool | str | None, known: bool
) -> None:
    """Ask whether a repository's code may run, unless that is settled; keep the answer."""
    path = root / _TRUSTED
    trusted = path.read_text("utf-8").split() if path.exists() else []
    name = f"{owner}_{repository}"
    if name in trusted:
        return
    if trust_repo is None:
        warnings.warn(
            f"code of {owner}/{repository} runs, from the network: pass trust_repo=True or False",
            stacklevel=4,
        )
    elif trust_repo is False or (trust_repo == "check" and not known):
        answer = input(
            f"The repository {owner}/{repository} is not in the list of trusted ones, and its code is "
            "about to run. Do you trust it, and want it in the list (y/N)? "
        )
        if answer.lower() not in ("y", "yes"):
            raise RuntimeError(f"hub: {owner}/{repository} is not trusted")
        path.write_text("\n".join([*trusted, name, ""]), "utf-8")
    elif trust_repo is True:
        path.write_text("\n".join([*trusted, name, ""]), "utf-8")
