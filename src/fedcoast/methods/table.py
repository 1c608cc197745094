"""The table of all methods for the docs. Print it with `python -m fedcoast.methods.table`."""

from collections.abc import Callable, Mapping
from functools import partial

from fedcoast.methods import METHODS, Assessor, Method


def method_table(methods: Mapping[str, Method] = METHODS) -> str:
    """One row for each method, in Markdown."""
    rows = ["| method | measures | needs | in Python |", "|---|---|---|---|"]
    for name, method in methods.items():
        needs = ", ".join(method.needs) or "–"
        rows.append(f"| `{name}` | {method.measures} | {needs} | `{_call(method)}` |")
    return "\n".join(rows) + "\n"


def _call(method: Method) -> str:
    """How to make one, without the import.

    >>> _call(Method(partial(dict, game="exact"), "nothing"))
    "dict(game='exact')"
    """
    made: Callable[..., Assessor] | partial[Assessor] = method.make
    preset = made.keywords if isinstance(made, partial) else {}
    owner = made.func if isinstance(made, partial) else made
    takes_utility = "utility" in method.needs or "gradient" in method.needs
    arguments = ["utility"] * takes_utility + [f"{option}={value!r}" for option, value in preset.items()]
    return f"{owner.__qualname__}({', '.join(arguments)})"


if __name__ == "__main__":
    print(method_table(), end="")
