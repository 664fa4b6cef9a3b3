"""How the documentation is built: ``sphinx-build -W docs site``.

Nothing is taken from the network. Stories on published data are run where ``GPATTR_DATA_DIR`` names
a folder that has them, and are left out otherwise; the paper then has committed pictures."""

import json
import os
import sys
from pathlib import Path

import gpattr

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

PUBLISHED_DATA = (
    "plot_wine",
    "plot_shapley",
    "plot_partial_dependence",
    "plot_housing",
    "plot_paper",
)

project = "gpattr"
author = "The gpattr developers"
copyright = author
release = gpattr.__version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
    "docstrings",
    "kernel_pages",
    "generated",
    "layout",
]
exclude_patterns = [
    "_ext",
    "_templates",
    "compare_results.md",
    "compare_shapley_results.md",
    "compare_dependence_results.md",
    "**sg_execution_times.rst",
]  # the last ask the network for a script
templates_path = ["_templates"]
default_role = "py:obj"
# Words such as mean in a docstring name no object, and several objects have one of that name.
suppress_warnings = ["ref.python"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath", "smartquotes"]
myst_heading_anchors = 3

autosummary_generate_overwrite = True
autodoc_typehints = "both"
autodoc_typehints_description_target = "documented"
ALIASES = ("Array", "ArrayLike", "FloatArray", "Groups", "Names", "RandomLike")
autodoc_type_aliases = {name: name for name in ALIASES}
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"

html_theme = "furo"
html_title = "gpattr"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_css_files = ["gpattr.css"]
html_js_files = ["versions.js"]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # it reads other pages, which a page on a disk may not
html_context = {"versions": json.loads((HERE / "_static" / "versions.json").read_text("utf-8"))}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "versions.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072b2", "color-brand-content": "#0063a0"},
    "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#56b4e9"},
    "footer_icons": [
        {
            "name": "GitHub",
            "url": "https://github.com/gpattr/gpattr",
            "html": (HERE / "_static" / "github.svg").read_text("utf-8"),
            "class": "",
        }
    ],
}

left_out = ("in_pictures",) if os.environ.get("GPATTR_DATA_DIR") else PUBLISHED_DATA
sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "ignore_pattern": "|".join(left_out),
    "image_scrapers": ("matplotlib", "figures"),
    "image_srcset": ["2x"],
    "thumbnail_size": (640, 400),
    "abort_on_example_error": True,
    "show_signature": False,
    "show_memory": False,
    "download_all_examples": False,
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
}
