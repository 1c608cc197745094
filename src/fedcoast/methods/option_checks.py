"""The options of a method, checked: every error names the option, what it may be and what came."""

import sys

from fedcoast.errors import BadSetting

LARGEST = 1e100  # sums and squares of larger numbers are not finite


def check_word(option: str, value: object, words: tuple[str, ...]) -> None:
    """
    >>> check_word("penalty", "exact", ("sampled", "exact"))
    """
    if not isinstance(value, str) or value not in words:
        raise BadSetting(f"{option} must be one of {', '.join(map(repr, words))}; got {value!r}")


def check_count(option: str, value: object, least: int, what: str) -> None:
    """A whole number of at least `least`; `what` says what it counts."""
    if type(value) is not int or value < least:
        raise BadSetting(f"{option} must be an integer of at least {least}, {what}; got {value!r}")


def check_seed(value: object) -> None:
    check_count("seed", value, 0, "which every random choice comes from")


def check_momentum(value: object, what: str) -> None:
    """A share of the past in [0, 1)."""
    if not isinstance(value, int | float) or not is_number(value) or not 0 <= value < 1:
        raise BadSetting(f"momentum must lie in [0, 1), the share of {what} that is kept; got {value!r}")


def is_number(value: object) -> bool:
    """A finite real one, no boolean.

    >>> is_number(0.5), is_number(True), is_number(float("nan")), is_number(10**400)
    (True, False, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
