"""Pages made from the code: one for each method, the command line, and the Python reference."""

import re
from collections.abc import Iterator
from functools import partial

import typer

import fedcoast
from fedcoast import METHODS
from fedcoast.cli import app
from fedcoast.methods import MethodConfig

# Modules that users import, beside the names of `fedcoast` itself.
MODULES = {
    "fedcoast.testing": "Check a method of your own",
    "fedcoast.plotting": "Figures",
    "fedcoast.integrations.flower": "Flower",
    "fedcoast.integrations.flower.legacy": "Flower: the old API",
    "fedcoast.integrations.nvflare": "NVIDIA FLARE",
    "fedcoast.integrations.observer_hub": "Your own loop: the hub",
    "fedcoast.integrations.round_capture": "Your own loop: what a round is made of",
    "fedcoast.integrations.trackers": "TensorBoard, MLflow, Weights & Biases",
    "fedcoast.integrations.ray": "Ray",
    "fedcoast.integrations.torch": "PyTorch",
    "fedcoast.analysis.uncertainty": "Uncertainty",
    "fedcoast.analysis.verdicts": "Verdicts",
    "fedcoast.analysis.flags": "Flags",
    "fedcoast.analysis.rewards": "Rewards",
    "fedcoast.analysis.health": "Health of the model",
    "fedcoast.audit": "Audit",
    "fedcoast.simulation.experiment": "Simulated federations: the experiment",
    "fedcoast.simulation.federation": "Simulated federations: the federation",
    "fedcoast.simulation.attacks": "Simulated federations: attacks",
    "fedcoast.simulation.site_federation": "Federations of real sites",
}


def pages() -> dict[str, str]:
    """Every page made from the code, by its path in the site."""
    made = {path: _method_page(name) for path, name in method_pages()}
    return {**made, "reference/cli.md": _cli_page(), "reference/python.md": _python_page()}


def method_pages() -> list[tuple[str, str]]:
    return [(f"reference/methods/{name}.md", name) for name in METHODS]


def _method_page(name: str) -> str:
    method = METHODS[name]
    maker = method.make
    options = {}
    while isinstance(maker, partial):
        options, maker = {**maker.keywords, **options}, maker.func
    needs = ", ".join(method.needs) or "nothing beyond what a server sees"
    made = ", ".join(f"{option}={value!r}" for option, value in options.items())
    lines = [
        f"# `{name}`",
        f"**Measures**: {method.measures}.",
        f"**Needs**: {needs}.",
        *([f"**Made with**: `{maker.__name__}({made})`."] if options else []),
        *([_options_table(method.config)] if method.config is not None else []),
        f"::: {maker.__module__}\n    options:\n      show_root_heading: false\n      show_root_toc_entry: false\n"
        f"      members: [{maker.__name__}]\n      inherited_members: false",
    ]
    return "\n\n".join(lines) + "\n"


def _options_table(config: type[MethodConfig]) -> str:
    rows = ["| option | default | what it does |", "|---|---|---|"]
    for name, info in config.options().items():
        words = " ".join(filter(None, (info.help, info.explanation)))
        words = re.sub(r"([|*_<])", r"\\\1", words)
        rows.append(f"| `{name}` | `{info.default!r}` | {words} |")
    return "\n".join(rows)


def _python_page() -> str:
    public = "\n\n".join(f"::: fedcoast.{name}" for name in fedcoast.__all__)
    modules = "\n\n".join(
        f"## {title}\n\n::: {module}\n    options:\n      heading_level: 3" for module, title in MODULES.items()
    )
    return f"# Python\n\nEverything below is importable as `from fedcoast import …`.\n\n{public}\n\n{modules}\n"


def _cli_page() -> str:
    group = typer.main.get_command(app)
    epilog = getattr(group, "epilog", None) or ""
    parts = ["# Command line", f"{group.help} {epilog}".strip()]
    for words, command in _commands(group):
        parts.append(f"## fedcoast {words}")
        parts.append((command.help or "").replace("\f", "").strip())
        rows = [_row(parameter) for parameter in command.params if parameter.name != "help"]
        if rows:
            parts.append("\n".join(["| argument or option | default | what it does |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _commands(group: typer.core.TyperGroup, *within: str) -> Iterator[tuple[str, typer.core.TyperCommand]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, *within, name)
        else:
            yield " ".join((*within, name)), command


def _row(parameter: typer.core.TyperArgument | typer.core.TyperOption) -> str:
    argument = parameter.param_type_name == "argument"
    name = parameter.name.upper() if argument else ", ".join([*parameter.opts, *parameter.secondary_opts])
    if not argument and not getattr(parameter, "is_flag", False):
        name += f" {parameter.make_metavar(_context(parameter))}"
    wanted = "required" if parameter.required else _shown(parameter.default)
    words = (getattr(parameter, "help", None) or "").replace("\n", " ")
    words = re.sub(r"([|*_<])", r"\\\1", words)
    return f"| `{name.replace('|', ' / ')}` | {wanted} | {words} |"


def _context(parameter: typer.core.TyperOption) -> "typer.Context":
    return typer.Context(typer.main.get_command(app))


def _shown(default: object) -> str:
    return "" if default is None or default == () or callable(default) else f"`{default}`"
