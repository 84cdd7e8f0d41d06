"""How Sphinx builds the site of the pages in ``docs/``: ``make docs``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

# Docstrings are read from the functions themselves, and nothing is compiled while the site is built.
os.environ["NUMBA_DISABLE_JIT"] = "1"

import gpusched_env  # noqa: E402

project = "gpusched_env"
author = "the authors of gpusched_env"
version = release = gpusched_env.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.apidoc",
    "sphinx_copybutton",
    "sphinx_design",
    "command_line",
    "docstrings",
    "links",
    "moving",
    "navigation",
    "search",
    "sidebar",
]
root_doc = "index"
exclude_patterns = ["README.md", "site", "examples"]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}

# ---------------------------------------------------------------------------------------------- pages
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
myst_url_schemes = {"http": None, "https": None, "source": {"url": "sources/{{path}}.html"}}
# Their outputs are those that tests/test_notebooks.py kept.
nb_execution_mode = "off"
nb_merge_streams = True

# ---------------------------------------------------------------------------------------------- API
apidoc_modules = [
    {
        "path": "../../gpusched_env",
        "destination": "api",
        # What programs import. The rest has pages of its own (devices, hardware, schedulers, the command line), and
        # docstrings for those who read the sources.
        "exclude_patterns": [
            *(f"**/{room}/*" for room in ("agents/training", "baselines", "data", "display", "experiments", "games")),
            *(f"**/{room}/*" for room in ("devices/*", "planning", "workload/host", "workload/importers")),
            *(
                f"**/{module}.py"
                for module in ("building", "closure", "locks", "numba_internals", "syntax", "versions")
            ),
        ],
        "follow_links": True,
        "module_first": True,
        "include_private": False,
        "max_depth": 2,
    }
]
autodoc_default_options = {"members": True, "undoc-members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["cuda", "cupy", "nvmath", "ray"]
python_use_unqualified_type_names = True
# Of types of the same name in two modules, those of signatures lead to the first.
# Charts are kept twice, and pages show the picture.
suppress_warnings = ["ref.python", "mystnb.unknown_mime_type"]

# ---------------------------------------------------------------------------------------------- looks
html_theme = "furo"
html_title = "gpusched_env"
# What is wider than its box is announced as in reports.
html_static_path = ["static", "../../experiments/templates/scroll.js"]
html_css_files = ["site.css"]
html_js_files = [("scroll.js", {"defer": "defer"})]
# A page of its own, which is there as it is.
html_extra_path = ["../episodes.html"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
