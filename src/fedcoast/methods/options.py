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
from difflib import get_close_matches
from types import NoneType
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from fedcoast.errors import BadSetting
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

    def check_numbers(self) -> None:
        """Refuse what is no number where an option is one; its range is for the configuration to check."""
        for name, hint in get_type_hints(type(self)).items():
            kinds, value = set(get_args(hint) or (hint,)), getattr(self, name)
            if not kinds <= {int, float, NoneType} or (value is None and NoneType in kinds):
                continue
            if isinstance(value, bool) or not isinstance(value, int | float if float in kinds else int):
                wanted = ("a number" if float in kinds else "an integer") + (", or None" if NoneType in kinds else "")
                raise BadSetting(f"{name} must be {wanted}; got {value!r}")

    @property
    def zero_is_idle(self) -> bool:
        """Whether a client that returns the start model scores 0."""
        return False

    @property
    def dependence_span(self) -> int:
        """How many rounds apart two credits may be that depend on the same movement; 0 where none do."""
        return 0

    @property
    def counts_votes(self) -> bool:
        """Whether a credit is a count of votes."""
        return False

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
        """Every option by name, in order; `bad_uploads`, which every method has, is the last."""
        inherited_last = sorted(fields(cls), key=lambda one: one.name == "bad_uploads")
        return {one.name: one.metadata[_KEY] for one in inherited_last}

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
    def read_texts(cls, texts: Mapping[str, str]) -> dict[str, Any]:
        """The values of options that a user typed."""
        known, hints = cls.options(), get_type_hints(cls)
        for name in texts:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f" (did you mean {near[0]}?)" if near else ""
                raise BadSetting(f"there is no option {name!r}; there are {', '.join(known)}{hint}")
        return {
            name: reader(text) if (reader := known[name].from_text) else _from_text(hints[name], text)
            for name, text in texts.items()
        }

    @classmethod
    def described(cls) -> str:
        """The options for a docstring: name, default and what it does."""
        lines = []
        for name, info in cls.options().items():
            lines.append(f"{name} = {info.default!r}\n    " + " ".join(filter(None, (info.help, info.explanation))))
        return "\n".join(lines)


def _from_text(hint: Any, text: str) -> Any:
    """A value as its type reads it; what no type reads stays text, which the configuration then checks.

    >>> _from_text(int | None, "none"), _from_text(float, "0.5"), _from_text(int | float, "3")
    (None, 0.5, 3)
    """
    types = get_args(hint) or (hint,)
    if type(None) in types and text.lower() == "none":
        return None
    for kind in (int, float):
        try:
            if kind in types:
                return kind(text)
        except ValueError:
            pass
    return text
