"""What comes from outside: names checked before they are passed on, strings made fit to be shown.

Text files are read by the core, with a bound: `headstart_types::read_text`.
"""

from os import PathLike, fspath

from headstart._core import HeadstartError


def name(value: str | PathLike[str], what: str) -> str:
    """Return a name or path as text; `what` says what it is the name of.

    Raises:
        HeadstartError: It is not in UTF-8, which profiles, results in JSON and pictures are.
    """
    text = fspath(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        problem = f"{visible(text)}: the name of the {what} is not in UTF-8"
        raise HeadstartError(f"{problem}; allowed: a name in UTF-8, or a link of such a name to the file") from error
    return text


def visible(text: str) -> str:
    r"""Return `text` with what cannot be printed as an escape, such as \x1b, so that it is one harmless line."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
