"""The page as one text: template, style, scripts and data.

The scripts in page/ are ES modules, which editors and browsers understand. A page opened from disk cannot load modules,
so they are joined inside one function, in import order, without `import` lines and `export` keywords. Therefore every
import must be on one line, and top-level names must be unique across modules.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from importlib.resources import files

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";$', flags=re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|let|class) )", flags=re.MULTILINE)
_MARK = re.compile(r"\{\{(\w+)\}\}")


def page(*, title: str, parts: Mapping[str, str], data: Mapping[str, str]) -> str:
    """The HTML: the template's {{name}} replaced by `parts`, and `data` (texts without "<") for the scripts."""
    script, style = joined_scripts(), _file("style.css")
    holders = "\n".join(f'<script type="text/plain" id="data-{name}">{text}</script>' for name, text in data.items())
    # Content security policy: only this script, this style and the page's own images.
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    marks = {"title": html.escape(title), "policy": policy, "style": style, "script": script, "data": holders, **parts}
    return _MARK.sub(lambda mark: marks[mark[1]], _file("template.html"))


def joined_scripts() -> str:
    """All scripts of the page as one script."""
    bodies = [f"// {name}.js\n{_EXPORT.sub('', _IMPORT.sub('', text)).strip()}\n" for name, text in modules().items()]
    return '(function () {\n"use strict";\n' + "\n".join(bodies) + "})();\n"


def modules() -> dict[str, str]:
    """main.js and its dependencies, each after those that it imports."""
    found: dict[str, str] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in found or name in above:
            return
        text = _file(f"{name}.js")
        for other in _IMPORT.findall(text):
            visit(other, (*above, name))
        found[name] = text

    visit("main", ())
    return found


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def _file(name: str) -> str:
    return files("simdims.report").joinpath("page", name).read_text(encoding="utf-8")
