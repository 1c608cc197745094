"""CoAst's options on the command line: one flag for every field of `CoAstConfig`, the same in every command."""

from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Annotated, Any, Literal, get_type_hints

import typer

from fedcoast.errors import BadSetting
from fedcoast.methods import CoAst, CoAstConfig
from fedcoast.rounds.round import Policy

Preset = Annotated[
    Literal["default", "votes", "paper", "research-code"],
    typer.Option(help="fedcoast's CoAst, the paper's idea, its text, or its code; other options change it."),
]


@dataclass(frozen=True)
class CoAstOptions:
    """The preset and the options that a user gave."""

    preset: str = "default"
    given: dict[str, Any] = field(default_factory=dict)

    @property
    def bad_uploads(self) -> Policy:
        """What the other methods of the same command should do with them."""
        policy: Policy = self.given.get("bad_uploads", CoAstConfig().bad_uploads)
        return policy

    def make(self, **resources: Any) -> CoAst:
        """A fresh assessor."""
        made: Callable[..., CoAst] = (
            CoAst if self.preset == "default" else getattr(CoAst, self.preset.replace("-", "_"))
        )
        return made(**self.given, **resources)

    def refuse(self, why: str) -> None:
        """Raise if the user gave any."""
        flags = ([] if self.preset == "default" else ["preset"]) + list(self.given)
        if flags:
            raise BadSetting(f"{why}; leave out {', '.join('--' + flag.replace('_', '-') for flag in flags)}")


def takes_coast_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with `--preset` and all options of CoAst in the place of its parameter `coast`."""
    flags = _flags()
    parameters: list[Parameter] = []
    for parameter in signature(command, eval_str=True).parameters.values():
        parameters += flags.values() if parameter.name == "coast" else [parameter]

    def run(**arguments: Any) -> None:
        texts = {name: arguments.pop(name) for name in flags}
        preset = texts.pop("preset")
        options = CoAstConfig.options()
        given = {
            name: reader(value) if (reader := options[name].from_text) else value
            for name, value in texts.items()
            if value is not None
        }
        command(coast=CoAstOptions(preset, given), **arguments)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def _flags() -> dict[str, Parameter]:
    hints = get_type_hints(CoAstConfig)
    flags = {"preset": Parameter("preset", Parameter.KEYWORD_ONLY, default="default", annotation=Preset)}
    for name, info in CoAstConfig.options().items():
        kind: Any = hints[name] if info.from_text is None else str
        shown = "all" if info.default == slice(None) else str(info.default)
        annotation = Annotated[kind | None, typer.Option(help=info.help, show_default=shown)]
        flags[name] = Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
    return flags
