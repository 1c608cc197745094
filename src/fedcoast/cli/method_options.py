"""The method and its options on the command line: the same in every command that assesses a run.

CoAst has one flag for every field of `CoAstConfig`; other methods take `--option NAME=VALUE`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from fedcoast.cli.method_choice import OwnUtility, make_method, method_names
from fedcoast.errors import BadSetting
from fedcoast.methods import METHODS, Assessor, CoAst, CoAstConfig
from fedcoast.rounds.round import Policy

Preset = Annotated[
    Literal["default", "votes", "paper"],
    typer.Option(help="fedcoast's CoAst, the paper's idea, or its text; other options change it."),
]
Name = Annotated[str, typer.Option(help="The method, by its name; `fedcoast compare` lists them.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of --method; may be given several times."),
]


@dataclass(frozen=True)
class MethodOptions:
    """The method, the preset and the options that a user gave."""

    method: str = CoAst.method
    preset: str = "default"
    given: Mapping[str, Any] = field(default_factory=dict)
    """Options that have a flag of their own."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Options as `--option` has them."""
    utility: str | None = None

    @property
    def is_coast(self) -> bool:
        """Whether the method is CoAst, whose options have flags."""
        return METHODS[self.method].make is CoAst

    @property
    def bad_uploads(self) -> Policy:
        """What the other methods of the same command should do with them."""
        policy: Policy = self.given.get("bad_uploads", CoAstConfig().bad_uploads)
        return policy

    def make(self, run: Path, *, track_layers: bool = False) -> Assessor:
        """A fresh assessor for this run; methods without credits by layer ignore `track_layers`."""
        if self.is_coast:
            return self._coast(track_layers)
        self.refuse(
            f"options of CoAst do not apply to {self.method}", keep=("bad_uploads", "method", "option", "utility")
        )
        options = {**self._read_texts(), "bad_uploads": self.bad_uploads}
        return make_method(run, self.method, options, "loss", self.utility)

    def _coast(self, track_layers: bool) -> CoAst:
        make: Callable[..., CoAst] = CoAst if self.preset == "default" else getattr(CoAst, self.preset)
        return make(**{**self._read_texts(), **self.given}, track_layers=track_layers)

    def _read_texts(self) -> dict[str, Any]:
        config = METHODS[self.method].config
        if config is None and self.texts:
            raise BadSetting(f"{self.method} declares no options, so --option cannot set any; leave it out")
        return {} if config is None else config.read_texts(self.texts)

    def refuse(self, reason: str, keep: tuple[str, ...] = ()) -> None:
        """Raise if the user gave any other than those to `keep`."""
        others = {
            "method": self.method != CoAst.method,
            "preset": self.preset != "default",
            "option": bool(self.texts),
            "utility": self.utility is not None,
        }
        flags = [name for name, is_given in others.items() if is_given] + list(self.given)
        if flags := [name for name in flags if name not in keep]:
            raise BadSetting(f"{reason}; leave out {', '.join('--' + flag.replace('_', '-') for flag in flags)}")


def takes_method_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with `--method`, `--preset` and all options in the place of its parameter `method`."""
    flags = _flags()
    parameters: list[Parameter] = []
    for parameter in signature(command, eval_str=True).parameters.values():
        parameters += flags.values() if parameter.name == "method" else [parameter]

    def run(**arguments: Any) -> None:
        values = {name: arguments.pop(name) for name in flags}
        name, preset, utility = _one_name(values.pop("method")), values.pop("preset"), values.pop("utility")
        texts = dict(_pair(text) for text in values.pop("option") or ())
        options = CoAstConfig.options()
        given = {
            option: reader(value) if (reader := options[option].from_text) else value
            for option, value in values.items()
            if value is not None
        }
        command(method=MethodOptions(name, preset, given, texts, utility), **arguments)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def _flags() -> dict[str, Parameter]:
    hints = get_type_hints(CoAstConfig)
    common = {"method": (Name, CoAst.method), "option": (Options, None), "utility": (OwnUtility, None)}
    flags = {
        name: Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in {**common, "preset": (Preset, "default")}.items()
    }
    for name, info in CoAstConfig.options().items():
        kind: Any = hints[name] if info.from_text is None else str
        default_text = "all" if info.default == slice(None) else str(info.default)
        annotation = Annotated[kind | None, typer.Option(help=info.help, show_default=default_text)]
        flags[name] = Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
    return flags


def _one_name(method: str) -> str:
    names = method_names(method) if method.strip() != "all" else []
    if len(names) != 1:
        raise BadSetting(f"--method takes one name; fedcoast compare runs several. Got {method!r}")
    return names[0]


def _pair(text: str) -> tuple[str, str]:
    """
    >>> _pair("momentum=0.9")
    ('momentum', '0.9')
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise BadSetting(f"--option must look like NAME=VALUE, such as momentum=0.9; got {text!r}")
    return name.strip().replace("-", "_"), value.strip()
