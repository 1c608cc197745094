"""The errors of fedcoast. Every message says what was expected, what came and what to do."""

import importlib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

Client = str | int

MOST_SHOWN = 1000  # characters of a reason that quotes what a client sent


def printable(text: object) -> str:
    """Text as one line of a terminal or a log can show it: control and invisible characters are escaped.

    >>> printable("a\\x1b[2Jb"), printable("a\\nb"), printable(7)
    ('a\\\\x1b[2Jb', 'a\\\\nb', '7')
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def shortened(text: str, most: int = MOST_SHOWN) -> str:
    """The beginning of a text that may hold anything, such as a name that a client chose.

    >>> shortened("layer 'xxxxx' is missing", 10)
    "layer 'xxx… (24 characters)"
    """
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def blame(reasons: Mapping[Client, str]) -> str:
    """The end of a message about a broken model: who may have broken it, and with what.

    >>> blame({"oslo": "layer 'w' must be finite"}), blame({})
    ("; bad uploads: client 'oslo': layer 'w' must be finite", '')
    """
    named = "; ".join(f"client {client!r}: {shortened(reason)}" for client, reason in reasons.items())
    return f"; bad uploads: {named}" if named else ""


class FedcoastError(ValueError):
    """Base of all errors that fedcoast raises. Its text is safe to print, even with hostile names or paths."""

    def __str__(self) -> str:
        return printable(super().__str__())


class BadSetting(FedcoastError):
    """An option has a value that it cannot have."""


class BadRound(FedcoastError):
    """A round as a whole cannot be used: its number, its global models or its set of clients."""


class SpoiltRound(BadRound):
    """A global model of the round holds NaN or infinity, so that no upload can be compared with it."""


class BadUpload(FedcoastError):
    """One client's upload cannot be used; the rest of the round can."""

    def __init__(self, client: Client, reason: str) -> None:
        reason = shortened(reason)
        super().__init__(client, reason)  # its own arguments: so it survives a pickle between processes
        self.client = client
        self.reason = reason

    def __str__(self) -> str:
        return printable(f"client {self.client!r}: {self.reason}")


class BadFile(FedcoastError):
    """A file or folder is not what it should be: torn, altered, of another format."""


class MissingExtra(FedcoastError, ImportError):
    """An optional dependency is needed and not installed."""


def unknown_word(option: str, value: object, words: Iterable[str]) -> BadSetting:
    """The refusal of a word that an option does not know, with the nearest one that it does.

    >>> str(unknown_word("model", "mpl", ("mlp", "convnet")))
    "model must be one of mlp, convnet; got 'mpl' (did you mean mlp?)"
    """
    words = list(words)
    near = get_close_matches(str(value).lower(), words, n=1, cutoff=0.5)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return BadSetting(f"{option} must be one of {', '.join(words)}; got {value!r}{hint}")


def require(module: str, *, extra: str) -> Any:
    """Import an optional dependency, or say which `pip install` brings it.

    >>> require("json", extra="lab").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise MissingExtra(
            f"this needs {error.name}, which is not installed; run: pip install 'fedcoast[{extra}]'"
        ) from None
