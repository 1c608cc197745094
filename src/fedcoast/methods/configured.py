"""Assessors whose options are one configuration object, given as keywords or as a whole."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar, get_args

from fedcoast.errors import BadSetting
from fedcoast.methods.base import Assessor
from fedcoast.methods.layer_selection import Layers, describe, layers_from_text
from fedcoast.methods.option_checks import check_momentum
from fedcoast.methods.options import MethodConfig, option
from fedcoast.rounds.round import Policy

Config = TypeVar("Config", bound="AssessorConfig")


@dataclass(frozen=True, kw_only=True)
class AssessorConfig(MethodConfig):
    """The option that every method has."""

    bad_uploads: Policy = option(
        "quarantine",
        "An upload that cannot be used: leave the client out of that round, or raise.",
        "A quarantined upload is logged and counted.",
    )


def layers_option(default: str) -> Any:
    """The option `layers`, the same for every method that has it."""
    return option(
        default,
        "Layers that count: all, head, first+head, or patterns such as 'fc.*,conv1.*'.",
        "In Python also a list of patterns, or a function of the name.",
        from_text=layers_from_text,
        to_json=describe,
    )


@dataclass(frozen=True, kw_only=True)
class LayersConfig(AssessorConfig):
    """For methods that compare updates layer by layer."""

    layers: Layers = layers_option("all")

    def __post_init__(self) -> None:
        super().__post_init__()
        describe(self.layers)


@dataclass(frozen=True, kw_only=True)
class HeadAverageConfig(LayersConfig):
    """For methods that follow what the classifier head shows by a moving average."""

    momentum: float = option(
        0.9, "How much of its average a client keeps from round to round, in [0, 1).", "The paper's μ."
    )
    layers: Layers = layers_option("head")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_momentum(self.momentum, "an average")


class _Signature:
    """The parameters of a constructor with its options by name, for `help` and `inspect.signature`."""

    def __get__(self, instance: object, owner: type["ConfiguredAssessor[Any]"]) -> inspect.Signature:
        parameters = [*inspect.signature(owner.__init__).parameters.values()][1:]
        named = [parameter for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
        for name, info in owner.config_type.options().items():
            named.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=info.default))
        return inspect.Signature(named)


class ConfiguredAssessor(Assessor, Generic[Config]):
    """An assessor with the options of its configuration class, which is named once:

        class CGSV(ConfiguredAssessor[CGSVConfig]): ...

    `CGSV(momentum=0.9)`, `CGSV(config)` and `CGSV(config, momentum=0.9)` all work; the settings in answers are read off
    the configuration.
    """

    config_type: ClassVar[type[MethodConfig]] = AssessorConfig
    __signature__ = _Signature()

    def __init__(self, config: Config | None = None, **options: Any) -> None:
        self.config: Config = self._configure(config, options)
        super().__init__(self.config.bad_uploads)

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for base in vars(cls).get("__orig_bases__", ()):
            for argument in get_args(base):
                if isinstance(argument, type) and issubclass(argument, MethodConfig):
                    cls.config_type = argument

    @classmethod
    def _configure(cls, config: object, options: Mapping[str, Any]) -> Any:
        if config is not None and not isinstance(config, cls.config_type):
            name = cls.__name__
            first = next(iter(cls.config_type.options()))
            raise BadSetting(
                f"options of {name} are keywords, such as {name}({first}=…), or a {cls.config_type.__name__};"
                f" got {config!r}"
            )
        made = cls.config_type(**options) if config is None else replace(config, **options)
        made.check_numbers()
        return made

    @property
    def zero_is_idle(self) -> bool:
        return self.config.zero_is_idle

    @property
    def dependence_span(self) -> int:
        return self.config.dependence_span

    @property
    def settings(self) -> dict[str, Any]:
        settings = self.config.to_json()
        del settings["bad_uploads"]  # the base class adds it to every answer
        return settings
