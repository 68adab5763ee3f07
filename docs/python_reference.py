"""The reference of the Python package, from signatures and docstrings."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import headstart
from headstart import devices, model, parquet, plot, results, torch, tuning
from headstart.live import options

HEAD = """# The Python package

Written by the build from signatures and docstrings. [python.md](python.md) is the introduction. Every mistake of
the caller is a `HeadstartError`, a `ValueError` whose text is one line; a fault of headstart itself is an
`InternalError`, which is one too.
"""
MODULES = {
    "model": model,
    "devices": devices,
    "tuning": tuning,
    "torch": torch,
    "parquet": parquet,
    "plot": plot,
    "results": results,
}
SECTION = re.compile(r"^(Args|Returns|Yields|Raises):\n", re.MULTILINE)
PROGRAM = re.compile(r"from headstart|\w+(\.\w+)* = |found\.|model\.")
"""How a paragraph begins that is a program."""
WIDTH = 100
"""Of a signature on one line."""

Definition = ast.FunctionDef | ast.ClassDef


def page() -> str:
    """Return the page."""
    own = [(name, getattr(headstart, name)) for name in headstart.__all__]
    lines = [HEAD, "## headstart\n"]
    for name, value in own:
        if callable(value) and not issubclass(_kind(value), Exception):
            lines += _entry(f"headstart.{name}", value)
    for short, module in MODULES.items():
        lines.append(f"## headstart.{short}\n\n{_module(module)}\n")
        for name in _names(module):
            value = getattr(module, name)
            if value not in [each for _, each in own]:
                lines += _entry(f"{short}.{name}", value)
    return "\n".join(lines)


def _kind(value: Any) -> type:
    return value if isinstance(value, type) else object


def _names(module: ModuleType) -> list[str]:
    public: list[str] | None = getattr(module, "__all__", None)
    return [name for name in public or vars(module) if _is_shown(module, name, public is not None)]


def _is_shown(module: ModuleType, name: str, exported: bool) -> bool:
    value = getattr(module, name)
    here = exported or getattr(value, "__module__", "") == module.__name__
    return not name.startswith("_") and (inspect.isclass(value) or inspect.isfunction(value)) and here


def _module(module: ModuleType) -> str:
    """Return a module's docstring: words, and programs that stand apart in it."""
    text = inspect.getdoc(module) or ""
    parts = []
    for paragraph in re.split(r"\n\n+", text):
        lines = paragraph.splitlines()
        code = all(line.startswith("    ") for line in lines) or PROGRAM.match(paragraph)
        parts.append(f"```python\n{textwrap.dedent(paragraph)}\n```" if code else _words(paragraph))
    return "\n\n".join(parts) + "\n"


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"### {name}\n"
    node = _node(value)
    if isinstance(node, ast.ClassDef):
        yield f"{_doc(node)}\n"
        yield from _members(node)
    elif node is not None:
        yield f"```python\n{_signature(name, node)}\n```\n"
        yield f"{_doc(node)}\n"
        if node.args.kwarg is not None and node.args.kwarg.annotation is not None:
            keywords = ast.unparse(node.args.kwarg.annotation).removeprefix("Unpack[").removesuffix("]")
            of = _node(getattr(options, keywords, None))
            yield from ("Options:\n", *_members(of)) if isinstance(of, ast.ClassDef) else ()
    else:
        yield f"{_words(inspect.getdoc(value) or '')}\n"


def _node(value: Any) -> Definition | None:
    """Return the definition of a function or class, or `None` if it is not written in Python."""
    module = inspect.getmodule(value)
    file = getattr(module, "__file__", None)
    if file is None or not file.endswith(".py"):
        return None
    for node in ast.parse(Path(file).read_text(encoding="utf-8")).body:
        if isinstance(node, Definition) and node.name == value.__name__:
            return node
    return None


def _signature(name: str, node: ast.FunctionDef, *, method: bool = False) -> str:
    given, told = node.args, []
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    for argument, default in zip(positional, defaults, strict=True):
        told.append(_argument(argument, default))
    told = told[1:] if method and not any(_named(each) == "staticmethod" for each in node.decorator_list) else told
    if given.kwonlyargs:
        told.append("*")
    told += [_argument(*each) for each in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    told += [f"**{given.kwarg.arg}"] if given.kwarg else []
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{name}({', '.join(told)}){result}"
    return line if len(line) <= WIDTH else f"{name}(\n{''.join(f'    {each},{chr(10)}' for each in told)}){result}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    equals = " = " if kind else "="
    return f"{argument.arg}{kind}" + (f"{equals}{ast.unparse(default)}" if default is not None else "")


def _named(decorator: ast.expr) -> str:
    return ast.unparse(decorator).partition("(")[0]


def _members(node: ast.ClassDef) -> Iterator[str]:
    """Yield a class's fields, each with the text below it, then its methods."""
    lines = []
    for index, each in enumerate(node.body):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.target.id[0] != "_":
            below = node.body[index + 1] if index + 1 < len(node.body) else None
            words = ""
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                words = f": {_words(str(below.value.value))}"
            lines.append(f"- `{each.target.id}` (`{ast.unparse(each.annotation)}`){words}\n")
    if lines:
        yield "".join(lines)
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and (each.name[0] != "_" or each.name == "__init__"):
            name = node.name if each.name == "__init__" else f"{node.name}.{each.name}"
            plain = any(_named(one).endswith(("property", "cached_property")) for one in each.decorator_list)
            kind = f"{name}: {ast.unparse(each.returns)}" if plain and each.returns else ""
            yield f"```python\n{kind or _signature(name, each, method=True)}\n```\n\n{_doc(each)}\n"


def _doc(node: Definition) -> str:
    """Return a docstring as Markdown: arguments and errors as lists."""
    text = ast.get_docstring(node) or ""
    first, *rest = SECTION.split(text)
    parts = [_module_words(first)]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        items: list[str] = []
        for line in textwrap.dedent(body).strip("\n").splitlines():
            if line.startswith(" ") and items:
                items[-1] += f" {line.strip()}"
            elif line.strip():
                items.append(line)
        listed = (re.sub(r"^(\*{0,2}\w+):", r"`\1`:", item) for item in items)
        titles = {"Args": "Arguments:", "Raises": "Errors:", "Returns": "Returns:", "Yields": "Yields:"}
        parts.append(f"{titles[title]}\n\n" + "".join(f"- {_words(item)}\n" for item in listed))
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def _module_words(text: str) -> str:
    return "\n\n".join(
        f"```python\n{textwrap.dedent(each)}\n```" if each.startswith("    ") else _words(each)
        for each in re.split(r"\n\n+", text.strip("\n"))
    )


def _words(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")
