"""What `--help` says, of every command."""

import re

import pytest
import typer
from typer.testing import CliRunner

from fedcoast.cli import app


def commands(group, *within):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *within, name)
        else:
            yield pytest.param((*within, name), command.params, id=" ".join((*within, name)))


every_command = pytest.mark.parametrize(("words", "parameters"), list(commands(typer.main.get_command(app))))


@every_command
def test_every_argument_is_explained(words, parameters):
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "120", "TERM": "dumb", "NO_COLOR": "1"}).stdout
    usage, _, details = shown[shown.index("Usage:") :].partition("\n")
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            assert parameter.name.upper() in usage
            assert re.search(rf"\b{parameter.name.upper()}\b", details), f"what {parameter.name.upper()} is"


@every_command
def test_nothing_in_a_help_text_is_eaten_as_markup(words, parameters):
    for parameter in parameters:
        assert not re.search(r"\[[a-z]", getattr(parameter, "help", None) or ""), parameter.name
