"""All methods by name. Other packages add theirs with `@register` or an entry point of the group `fedcoast.methods`.

    [project.entry-points."fedcoast.methods"]
    my-method = "my_package.my_module:MyMethod"

An entry point names an assessor class, or a `Method` that also says what it needs. It is loaded when somebody first
looks into `METHODS`; one that cannot be loaded is left out with a warning.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, TypeVar

from fedcoast.errors import BadSetting
from fedcoast.methods.base import Assessor
from fedcoast.methods.options import MethodConfig

GROUP = "fedcoast.methods"

Need = Literal["utility", "gradient", "classifier head", "weights", "full participation"]
Kind = TypeVar("Kind", bound=Callable[..., Assessor])

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Method:
    """How to make an assessor, what it measures in a few words, and what it cannot do without."""

    make: Callable[..., Assessor]
    measures: str
    needs: tuple[Need, ...] = ()
    config: type[MethodConfig] | None = None
    """The class of its options, where they are declared as one; that of a `ConfiguredAssessor` is known."""

    def __post_init__(self) -> None:
        made = self.make.func if isinstance(self.make, partial) else self.make
        object.__setattr__(self, "config", self.config or getattr(made, "config_type", None))


class MethodRegistry(Mapping[str, Method]):
    """Methods by name: those of fedcoast, those that were registered, and those of installed packages."""

    def __init__(self) -> None:
        self._methods: dict[str, Method] = {}
        self._entry_points_loaded = False

    def add(self, name: str, method: Method) -> None:
        if not isinstance(name, str) or not name:
            raise BadSetting(f"a method is registered under a name; got {name!r}")
        if name in self._methods:
            raise BadSetting(f"there is a method named {name!r} already; register yours under another name")
        self._methods[name] = method

    def remove(self, name: str) -> None:
        del self._methods[name]

    def _loaded(self) -> dict[str, Method]:
        if not self._entry_points_loaded:
            self._entry_points_loaded = True  # first: a package that is loaded may look in here
            for entry_point in entry_points(group=GROUP):
                self._load(entry_point)
        return self._methods

    def _load(self, entry_point: EntryPoint) -> None:
        try:
            method = entry_point.load()
            if entry_point.name not in self._methods:  # loading it may have run `@register`
                self.add(entry_point.name, method if isinstance(method, Method) else _described(method))
        except Exception as error:  # whatever a stranger's package does, the other methods stay
            _log.warning("Method %r of %s could not be loaded: %r", entry_point.name, entry_point.value, error)

    def __getitem__(self, name: str) -> Method:
        return self._loaded()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded())

    def __len__(self) -> int:
        return len(self._loaded())


METHODS = MethodRegistry()


def register_method(name: str, method: Method) -> None:
    """Add a method to `METHODS`: `compare`, the command line and the contract suite then know it."""
    METHODS.add(name, method)


def register(
    name: str, measures: str, needs: tuple[Need, ...] = (), config: type[MethodConfig] | None = None
) -> Callable[[Kind], Kind]:
    """The same as a decorator of an assessor class."""

    def add(make: Kind) -> Kind:
        METHODS.add(name, Method(make, measures, needs, config))
        return make

    return add


def config_of(method: str, settings: Mapping[str, Any]) -> MethodConfig | None:
    """The configuration behind the settings of an answer, for methods that declare one."""
    kind = METHODS[method].config if method in METHODS else None
    if kind is None:
        return None
    return kind.from_json({name: value for name, value in settings.items() if name in kind.options()})


def _described(make: object) -> Method:
    """A class alone: the first line of its docstring says what it measures."""
    if not (isinstance(make, type) and issubclass(make, Assessor)):
        raise BadSetting(f"an entry point of {GROUP} names an assessor class or a Method; got {make!r}")
    first = (make.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    return Method(make, first or f"what {make.__qualname__} measures")
