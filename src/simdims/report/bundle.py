"""The page put together: template, style, scripts and data in one text.

The scripts in page/ are ordinary ES modules, so that editors and browsers understand each on its own. A page that opens
from disk cannot load modules, so they are joined: in the order in which they need each other, their import lines left
out and the word `export` taken off, inside one function. What they have to keep to: an import stands on one line, and
no two of them define the same name at their top level.
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
    """The HTML.

    Parameters
    ----------
    title : str
        Plain text.
    parts : mapping of str to str
        HTML to put where the template says {{name}}.
    data : mapping of str to str
        What the scripts read, each in an element of its own with that id: JSON, or base64, either without "<".
    """
    script, style = joined_scripts(), _file("style.css")
    holders = "\n".join(f'<script type="text/plain" id="data-{name}">{text}</script>' for name, text in data.items())
    marks = {
        "title": html.escape(title),
        "policy": _policy(script, style),
        "style": style,
        "script": script,
        "data": holders,
        **parts,
    }
    return _MARK.sub(lambda mark: marks[mark[1]], _file("template.html"))


def joined_scripts() -> str:
    """All scripts of the page as one."""
    bodies = [f"// {name}.js\n{_EXPORT.sub('', _IMPORT.sub('', text)).strip()}\n" for name, text in modules().items()]
    return '(function () {\n"use strict";\n' + "\n".join(bodies) + "})();\n"


def modules() -> dict[str, str]:
    """The scripts that main.js needs, each after those that it imports."""
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


def _policy(script: str, style: str) -> str:
    """What the browser may do for this page: run its one script, use its one style, show its own images."""
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def _file(name: str) -> str:
    return files("simdims.report").joinpath("page", name).read_text(encoding="utf-8")
