"""Who is who: a client is a string or an integer, listed in one order and written to files without loss."""

import re
from collections.abc import Iterable, Mapping

import numpy as np

from fedcoast.errors import BadFile, BadRound, Client


def as_client(value: object) -> Client:
    """A client is a string or an integer; NumPy integers become plain ones."""
    if isinstance(value, str):
        return str.__str__(value)  # the text itself, whatever a subclass (an enumeration, say) prints
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
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
    if isinstance(name, str) and kind == "str":
        return name
    if isinstance(name, str) and kind == "int" and re.fullmatch(r"-?[0-9]{1,4000}", name):
        return int(name)
    raise BadFile(f"a client is a name of type str or int; got {data!r}")
