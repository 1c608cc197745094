"""Limits for files from elsewhere; each can be raised by an environment variable.

A file is never refused for being as large as the disk says it is: a limit is about files that are small on the disk
and large in memory, such as compressed zeros. Only JSON is limited by its length alone.
"""

import os
import re

from fedcoast.errors import BadFile, BadSetting, printable

LIMITS = {
    "FEDCOAST_MAX_MODEL": "2GB",
    "FEDCOAST_MAX_JSON": "256MB",
    "FEDCOAST_MAX_DATASET": "2GB",
}
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([KMGT]?B)\s*")
_SLACK = 2  # a header, a zip directory, blocks that a file system compresses a little


def bytes_in(size: str | int) -> int:
    """A size in bytes, or in words.

    >>> bytes_in("500MB"), bytes_in("1.5 GB"), bytes_in(4096)
    (500000000, 1500000000, 4096)
    """
    if isinstance(size, str) and (found := _SIZE.fullmatch(size.upper())):
        return int(float(found[1]) * _UNITS[found[2]])
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        return size
    raise BadSetting(f"a size must be a number of bytes, or a text such as '500MB' or '2 GB'; got {size!r}")


def limit(variable: str) -> int:
    """A limit in bytes, from the environment or the default."""
    value = os.environ.get(variable, LIMITS[variable])
    try:
        return int(value) if re.fullmatch(r"[0-9]{1,18}", value.strip()) else bytes_in(value)
    except BadSetting as error:
        raise BadSetting(f"{variable} must be a size such as '8GB' or a number of bytes; got {value!r}") from error


def check_size(what: object, needed: int, variable: str, on_disk: int = 0) -> None:
    """Refuse what needs more memory than its limit, unless the disk really holds about that much."""
    most = limit(variable)
    if needed > max(most, _SLACK * on_disk):
        raise BadFile(
            f"{printable(what)} needs {needed:,} bytes of memory, and at most {most:,} are allowed for a file that"
            f" takes {on_disk:,} on the disk; if you trust it, set {variable} to a larger size, such as"
            f" {variable}={-(-needed // 10**9)}GB"
        )
