"""Client names: a client is a string or an integer, listed in one order and written to files without loss."""

import re
import unicodedata
from collections.abc import Iterable, Mapping

import numpy as np

from fedcoast.errors import BadFile, BadRound, Client, shortened

LONGEST_NAME = 256  # characters
_INVISIBLE = ("Cc", "Cf", "Zl", "Zp")  # Unicode's control and format characters, line and paragraph separators
# Letters of other alphabets that most fonts draw like a Latin one.
_LOOKS_LIKE = str.maketrans("аеорсухіјѕһԁԛԝвкмнтгαεικνορτυχωϲϳ01", "aeopcyxijshdqwbkmhtraeiknoptuxwcjol")


def tidy_name(text: str) -> str:
    """An external name in one spelling: composed (NFC), without invisible characters or surrounding spaces.

    >>> tidy_name("  berlin\\u200b ") == "berlin", tidy_name("Mu\\u0308nchen") == "M\\xfcnchen"
    (True, True)
    """
    visible = "".join(c for c in text if unicodedata.category(c) not in _INVISIBLE)
    return unicodedata.normalize("NFC", visible).strip()


def look_alikes(clients: Iterable[Client]) -> list[tuple[Client, ...]]:
    """Groups of names that look alike: they differ in case, spaces, or letters of another alphabet.

    >>> look_alikes(["berlin", "Berlin ", "b\\u0435rlin", "oslo", 7])
    [('Berlin ', 'berlin', 'bеrlin')]
    """
    groups: dict[str, list[Client]] = {}
    for client in in_order(clients):
        if isinstance(client, str):
            for skeleton in _skeletons(client):
                groups.setdefault(skeleton, []).append(client)
    return list(dict.fromkeys(tuple(group) for group in groups.values() if len(group) > 1))


def _skeletons(name: str) -> set[str]:
    """The look of a name in lower case; a capital I counts as a lower-case L."""
    plain = "".join(unicodedata.normalize("NFKC", tidy_name(name)).split())
    return {text.casefold().translate(_LOOKS_LIKE) for text in (plain, plain.replace("I", "l"))}


def as_client(value: object) -> Client:
    """A client is a string or an integer; NumPy integers become plain ones."""
    if isinstance(value, str):
        if len(value) > LONGEST_NAME:
            raise BadRound(
                f"a client's name has at most {LONGEST_NAME} characters; got {len(value):,}, beginning {value[:40]!r}"
            )
        return str.__str__(value)  # the text itself, whatever a subclass (an enumeration, say) prints
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        if abs(int(value)) >= 10**LONGEST_NAME:
            raise BadRound(f"a client's number has at most {LONGEST_NAME} digits")
        return int(value)
    raise BadRound(f"a client is named by a string or an integer; got {value!r}")


def in_order(clients: Iterable[Client]) -> tuple[Client, ...]:
    """The one order in which clients are listed: integers by value, then names by code point.

    >>> in_order(["b", 10, "a", 9])
    (9, 10, 'a', 'b')
    """
    return tuple(sorted(clients, key=lambda client: (isinstance(client, str), client)))


def client_to_json(client: Client) -> dict[str, str]:
    """Names and numbers apart, numbers as text: 64 bits survive every reader.

    >>> client_to_json(7423646701073919812)
    {'name': '7423646701073919812', 'type': 'int'}
    """
    return {"name": str(client), "type": type(client).__name__}


def client_from_json(data: Mapping[str, str]) -> Client:
    name, kind = data["name"], data["type"]
    if isinstance(name, str) and kind == "str" and len(name) <= LONGEST_NAME:
        return name
    if isinstance(name, str) and kind == "int" and re.fullmatch(rf"-?[0-9]{{1,{LONGEST_NAME}}}", name):
        return int(name)
    got = shortened(repr(data), 100)
    raise BadFile(f"a client is a name of type str or int, at most {LONGEST_NAME} characters long; got {got}")
