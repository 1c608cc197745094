"""Whose CoAst is asked for: fedcoast's own, or a reading of the paper."""

from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

import typer

from fedcoast.methods import CoAst

Some = TypeVar("Some", bound=CoAst)

Preset = Annotated[
    Literal["default", "votes", "paper", "research-code"],
    typer.Option(help="Whose CoAst: ours, the paper's idea, its text, its code; other options change it."),
]


def reading(kind: type[Some], preset: str) -> Callable[..., Some]:
    """What makes a `kind` of CoAst in that reading."""
    made: Callable[..., Some] = kind if preset == "default" else getattr(kind, preset.replace("-", "_"))
    return made
