"""Client names that trackers accept: one path segment of allowed characters, unique for each client."""

import hashlib
import re

from fedcoast.errors import Client

LONGEST = 80
_MARKED = re.compile(r".*-[0-9a-f]{16}")


def safe_name(client: Client, allowed: str) -> str:
    """A name of allowed characters, those of a regular expression's set; most names stay as they are.

    A name that has to be changed is marked with a hash of the whole one, and so is one that could be taken for another:
    one that looks marked, and the text of a number, which is a client's name too.

    >>> safe_name("berlin", "A-Za-z0-9_"), safe_name(7, "A-Za-z0-9_")
    ('berlin', '7')
    >>> safe_name("St. Mary's/A", "A-Za-z0-9_"), safe_name("7", "A-Za-z0-9_")
    ('St__Mary_s_A-150c5cbae8c2bc32', '7-0a528139bc7c07fe')
    """
    text = str(client)
    cleaned = re.sub(rf"[^{allowed}]", "_", text)[:LONGEST]
    if isinstance(client, int):
        if cleaned == text:
            return text
    elif text and cleaned == text and not re.fullmatch(r"-?[0-9]+", text) and not _MARKED.fullmatch(text):
        return text
    whole = f"{type(client).__name__} {text}".encode("utf-8", "surrogatepass")
    return f"{cleaned}-{hashlib.sha256(whole).hexdigest()[:16]}"
