"""How Sphinx builds the site; `make site` runs it."""

import sys
import zlib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import tensorplug as tp  # noqa: E402

project = "tensorplug"
author = "The tensorplug developers"
project_copyright = "the tensorplug developers"
version = release = tp.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "api_reference",
]
exclude_patterns = ["_ext", "_inventories", "tutorials", "generated/tutorials/*.ipynb"]
show_warning_types = True

# --- Markdown and docstrings ----------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
pygments_style = "friendly"

# --- other projects -------------------------------------------------------------------------------
# Where their inventories cannot be fetched, the few names in docs/_inventories serve: the build needs
# no network.

BUILD = HERE.parent / "build"


def inventory(name: str, title: str) -> str:
    """Write a text of names in the format of ``objects.inv``, and return its path."""
    head = f"# Sphinx inventory version 2\n# Project: {title}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    text = (HERE / "_inventories" / f"{name}.txt").read_bytes()
    BUILD.mkdir(exist_ok=True)
    path = BUILD / f"{name}.inv"
    path.write_bytes(head.encode() + zlib.compress(text))
    return str(path)


intersphinx_mapping = {
    "python": ("https://docs.python.org/3", (None, inventory("python", "Python"))),
    "numpy": ("https://numpy.org/doc/stable", (None, inventory("numpy", "NumPy"))),
}
intersphinx_timeout = 5

# --- tutorials ------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "generated/tutorials",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1,
    "download_all_examples": False,
    "remove_config_comments": True,
    "backreferences_dir": None,
    "capture_repr": (),
}

# --- pages ----------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "tensorplug"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_depth": 3,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "friendly",
    "pygments_dark_style": "native",
}
html_sidebars = {"index": []}
