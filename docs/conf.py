"""Settings of the documentation: Sphinx, without anything from the network.

`make docs` builds it. What the build writes lies in docs/_build: pages, the gallery and its pictures, stubs of the API.
"""

import os
import re
from importlib import import_module
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

import simdims

project = "simdims"
author = "The simdims developers"
copyright = author
version = release = simdims.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build/html", "_build/doctrees", "gallery"]
nitpicky = True
show_warning_types = True

# Pages in Markdown, which also read well without Sphinx.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# One page for each public name. Docstrings say the types, and a public name in `backquotes` becomes a link.
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
default_role = "name"

# A program data_NAME.py needs the files of the folder NAME of SIMDIMS_DATA; without them, only its text is shown.
data = Path(os.environ.get("SIMDIMS_DATA", "no-such-folder"))
with_data = [
    program.stem
    for program in Path(__file__).parent.glob("gallery/data_*.py")
    if (data / program.stem.removeprefix("data_")).is_dir()
]
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "_build/gallery",
    "backreferences_dir": "_build/backreferences",
    "doc_module": ("simdims",),
    "reference_url": {"simdims": None},
    "filename_pattern": rf"/({'|'.join(['plot_', *with_data])})",
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "min_reported_time": 1e6,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "download_all_examples": False,
    # Notebooks run as they are where simdims is not installed, as in hosted services.
    "first_notebook_cell": '%pip install --quiet "simdims[plot]"',
    "show_signature": False,
    "image_srcset": ["2x"],
}

html_theme = "pydata_sphinx_theme"
html_title = f"simdims {version}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "simdims"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "article_header_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}

ROOMS = ("metrics", "simulate", "datasets", "plots", "consensus", "selection", "inference", "discovery", "report")


def public_names() -> dict[str, str]:
    """What a docstring may call a public name -> the name under which the API reference has it."""
    names = {name: f"simdims.{name}" for name in simdims.__all__ if name != "__version__"}
    for room in ROOMS:
        module = import_module(f"simdims.{room}")
        for name in getattr(module, "__all__", vars(module)):
            full = names.setdefault(name, f"simdims.{room}.{name}")
            names[f"{room}.{name}"] = names[f"simdims.{room}.{name}"] = full
    return names | {full: full for full in names.values()}


def setup(app):
    """Make `name` in docstrings a link where the API reference has a page of it, and code elsewhere."""
    listed = (app.srcdir / "api" / "index.rst").read_text(encoding="utf-8").split()
    pages = {said: full for said, full in public_names().items() if full.removeprefix("simdims.") in listed}

    def name(role, rawtext, text, lineno, inliner, options=None, content=()):
        code = nodes.literal(rawtext, text)
        if text not in pages:
            return [code], []
        where = {"refdomain": "py", "reftype": "obj", "reftarget": pages[text], "refdoc": app.env.docname}
        return [addnodes.pending_xref(rawtext, code, refexplicit=True, refwarn=True, **where)], []

    def built(app, docname, source):
        """Lead from a program of the gallery, which is what the repository holds, to the page that is built of it."""
        for written, page in (
            (r"gallery/((?:plot|data)_\w+)\.py\)", r"_build/gallery/\1.rst)"),
            (r"gallery/README\.rst\)", "_build/gallery/index.rst)"),
        ):
            source[0] = re.sub(written, page, source[0])

    def find(app, env, node, contnode):
        """See Also says names as the modules do."""
        target = pages.get(node.get("reftarget"))
        if target is None or node.get("refdomain") != "py":
            return None
        domain = env.get_domain("py")
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, contnode)

    def skip(app, what, name, obj, skipped, options):
        """Leave out the requests for metadata that scikit-learn adds to an estimator."""
        return True if name.endswith("_request") else None

    def escape(app, what, name, obj, options, lines):
        """Take |Z| and n_iter_ in docstrings as they are: neither is a reference."""
        in_example = False
        for number, line in enumerate(lines):
            in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
            if not in_example:
                lines[number] = re.sub(r"(?<!\\)\||(?<=\w)_(?=[\s,;.)+]|$)", lambda found: "\\" + found[0], line)

    app.add_role("name", name)
    app.connect("source-read", built)
    app.connect("autodoc-process-docstring", escape, priority=900)
    app.connect("missing-reference", find)
    app.connect("autodoc-skip-member", skip)
