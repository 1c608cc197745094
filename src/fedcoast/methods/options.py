"""The options of a method, each declared once: name, default, help, check and form in JSON.

A configuration is a frozen, keyword-only dataclass that inherits from `MethodConfig` and makes its fields with
`option`. The settings in answers, the flags of the command line, the glossary of reports and the check of saved states
are all read off it.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True, kw_only=True)
... class Example(MethodConfig):
...     power: int = option(2, "Exponent of the norm.")
>>> Example(power=3).to_json(), Example.glossary()
({'power': 3}, {'power': 'Exponent of the norm.'})
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from fedcoast.methods.option_checks import check_word

_KEY = "option"


@dataclass(frozen=True)
class OptionInfo:
    """What is known of an option besides its name and type.

    default      the value that holds where none is given
    help         one line, for the command line and reports
    explanation  what a reader of the documentation needs to know beyond that
    from_text    reads it from a command line; where there is none, its type says how
    to_json      the value as answers show it
    from_json    the way back
    """

    default: Any
    help: str
    explanation: str = ""
    from_text: Callable[[str], Any] | None = None
    to_json: Callable[[Any], Any] | None = None
    from_json: Callable[[Any], Any] | None = None


def option(default: Any, help: str, explanation: str = "", **forms: Callable[[Any], Any]) -> Any:
    """A field of a configuration; `forms` are the last three fields of `OptionInfo`."""
    return field(default_factory=lambda: default, metadata={_KEY: OptionInfo(default, help, explanation, **forms)})


@dataclass(frozen=True, kw_only=True)
class MethodConfig:
    """Base of all configurations. Options whose type is a `Literal` are checked here."""

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(type(self)).items():
            if get_origin(hint) is Literal:
                check_word(name, getattr(self, name), get_args(hint))

    @property
    def zero_is_idle(self) -> bool:
        """Whether a client that returns the start model scores 0."""
        return False

    @property
    def dependence_span(self) -> int:
        """How many rounds apart two credits may be that depend on the same movement; 0 where none do."""
        return 0

    def score_meaning(self) -> str:
        """What a score means, in one sentence for reports; empty where the registry says enough."""
        return ""

    def explanation(self) -> tuple[str, ...]:
        """What was measured and how, in a few paragraphs for reports."""
        return ()

    def counted(self, rounds: tuple[int, ...]) -> tuple[int, ...] | None:
        """Which of the valued rounds the scores count; None for all."""
        return None

    @classmethod
    def options(cls) -> dict[str, OptionInfo]:
        """Every option by name, in order."""
        return {one.name: one.metadata[_KEY] for one in fields(cls)}

    @classmethod
    def glossary(cls) -> dict[str, str]:
        """The help of every option."""
        return {name: info.help for name, info in cls.options().items()}

    def to_json(self) -> dict[str, Any]:
        """Every option with its value, as JSON can hold it."""
        values = {name: (info, getattr(self, name)) for name, info in self.options().items()}
        return {name: info.to_json(value) if info.to_json else value for name, (info, value) in values.items()}

    @classmethod
    def from_json(cls, settings: Mapping[str, Any]) -> Self:
        """The configuration that `to_json` described. A function cannot come back."""
        known = cls.options()
        read = {name: info.from_json for name, info in known.items() if info.from_json is not None}
        return cls(**{name: read[name](value) if name in read else value for name, value in settings.items()})

    @classmethod
    def described(cls) -> str:
        """The options for a docstring: name, default and what it does."""
        lines = []
        for name, info in cls.options().items():
            lines.append(f"{name} = {info.default!r}\n    " + " ".join(filter(None, (info.help, info.explanation))))
        return "\n".join(lines)
