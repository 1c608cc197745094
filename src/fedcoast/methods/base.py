"""The base class of every method: it observes rounds, and gives its answer at any time."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Protocol

from fedcoast.errors import BadFile, BadRound, BadSetting, Client, FedcoastError
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.layer_credits import LayerCredits
from fedcoast.methods.ledger import Credits, Ledger, scaled, totals
from fedcoast.rounds.arrays import Array, read
from fedcoast.rounds.round import Policy, Round, check_policy
from fedcoast.rounds.schema import ModelSchema
from fedcoast.rounds.unchanged import noting_unchanged
from fedcoast.storage.old_settings import translated
from fedcoast.storage.tensors import read_tensors, write_tensors

STATE_FORMAT = "fedcoast-state"
STATE_VERSION = 1

Uploads = Iterator[tuple[Client, dict[str, Array]]]


class Observer(Protocol):
    """Anything that wants to see rounds."""

    def observe(self, fl_round: Round, /) -> None: ...


class Assessor(ABC):
    """An observer that gives an `Assessment`. It never trains and never changes a model.

    `observe` uses a whole round or nothing of it: when it raises, the assessor is unchanged, and the corrected
    round can be observed again. An upload that cannot be used goes to "quarantine" (the client is left out of
    that round, logged and counted) or raises, as `bad_uploads` says.

    A method defines what a round contributes (`_take`), its `settings`, and, if it keeps more than its credits,
    how that is saved (`_state`, `_restore`). A score is the sum of the client's credits unless `_scores` is overridden.
    """

    method: ClassVar[str]
    takes_ballots: ClassVar[bool] = False  # whether it accepts rounds that hold ballots instead of whole uploads
    remembers_everything: ClassVar[bool] = False  # whether its state has to grow with every round
    credits_absent: ClassVar[bool] = False  # whether it infers what a client would have given in rounds it missed

    def __init__(self, bad_uploads: Policy = "quarantine") -> None:
        check_policy(bad_uploads)
        self.bad_uploads = bad_uploads
        self.last_round: int | None = None
        self._schema: ModelSchema | None = None
        self._ledger = Ledger()
        self._fresh: tuple[dict[str, Any], dict[str, Array]] | None = None

    def observe(self, fl_round: Round, /) -> None:
        """Look at one round; numbers must increase, and the model must keep its layers."""
        if self.last_round is not None and fl_round.number <= self.last_round:
            raise BadRound(f"round numbers must increase; got {fl_round.number} after {self.last_round}")
        if fl_round.ballot_keep is not None and not self.takes_ballots:
            raise BadSetting(
                f"round {fl_round.number} holds ballots of keep={fl_round.ballot_keep} only; {self.method} needs"
                " the whole uploads. Record them whole, or use CoAst, which can work with ballots"
            )
        schema = fl_round.schema()
        if self._fresh is None:
            self._fresh = self._state()
        if self._schema is not None:
            if change := self._schema.differs(schema):
                raise BadRound(f"round {fl_round.number}: the model changed its layers: {change}; start a new assessor")
            schema = self._schema  # in the order of the first round, whatever order this one came in
        quarantined: dict[Client, str] = {}
        unchanged: list[Client] = []
        uploads = fl_round.uploads(schema, self.bad_uploads, quarantined)
        credits = self._take(fl_round, schema, noting_unchanged(fl_round.start, schema, uploads, unchanged))
        self._ledger.enter(fl_round.number, fl_round.clients, quarantined, credits, unchanged)
        self._schema = schema
        self.last_round = fl_round.number

    def new_segment(self) -> None:
        """Keep the credits and forget the model: the next round may have other layers. Pending rounds get no credit."""
        if self._schema is not None and self._fresh is not None:
            self._restore(*self._fresh)
            self._schema = None

    @abstractmethod
    def _take(self, fl_round: Round, schema: ModelSchema, uploads: Uploads) -> Credits:
        """Look at a round and return the credits that it makes final, by round and client.

        `uploads` yields the clients whose models can be used, one at a time; read each before the next. Change your own
        attributes only after everything is computed, so that an error leaves the assessor unchanged.
        """

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Every option with its value, as JSON can hold it."""

    def assessment(self) -> Assessment:
        """The answer so far."""
        unscaled, factors = self._credits(), self._factors()
        credits = scaled(unscaled, factors)
        counted = self._counted_rounds(tuple(credits))
        scores, rounds_scored = totals(
            credits if counted is None else {number: credits[number] for number in counted}, self._ledger.clients
        )
        return Assessment(
            method=self.method,
            scores=self._scores(scores),
            credits=credits,
            pending=self._pending(),
            rounds_scored=rounds_scored,
            quarantined={number: dict(names) for number, names in self._ledger.quarantined.items()},
            settings=self._all_settings(),
            counted_rounds=counted,
            zero_is_idle=self.zero_is_idle,
            dependence_span=self.dependence_span,
            unchanged={number: tuple(of) for number, of in self._ledger.unchanged.items()},
            by_layer=self._by_layer(),
            unscaled_credits=unscaled if factors else None,
            unordered=self._unordered(),
        )

    @property
    def zero_is_idle(self) -> bool:
        """Whether a client that returns the start model scores 0."""
        return False

    @property
    def dependence_span(self) -> int:
        """How many rounds apart two credits may be that depend on the same movement; 0 where none do."""
        return 0

    def _credits(self) -> Credits:
        """The credits of each round; those of rounds that are not pending never change."""
        return {number: dict(of) for number, of in self._ledger.credits.items()}

    def _factors(self) -> dict[Client, float]:
        """What all credits of a client are multiplied by; later rounds may change it. Empty: nothing."""
        return {}

    def _unordered(self) -> tuple[tuple[Client, Client], ...]:
        """The pairs of clients whose order the method cannot tell."""
        return ()

    def _counted_rounds(self, valued: tuple[int, ...]) -> tuple[int, ...] | None:
        """Which of the valued rounds the scores count; None for all."""
        return None

    def _by_layer(self) -> LayerCredits | None:
        """From which layers the scores came, where the method tracks that."""
        return None

    def _pending(self) -> tuple[int, ...]:
        """The rounds whose credit is not final."""
        return ()

    def _scores(self, sums: dict[Client, float]) -> dict[Client, float]:
        """From sums of credits to scores."""
        return sums

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """What must be saved beside the credits: values for JSON, and arrays."""
        return {}, {}

    def _restore(self, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Restore what `_state` returned. Change nothing before everything is read."""
        if facts or arrays:
            raise BadFile(f"{self.method} remembers nothing beyond its credits; this state holds more")

    def _all_settings(self) -> dict[str, Any]:
        return {**self.settings, "bad_uploads": self.bad_uploads}

    def save(self, path: str | Path) -> None:
        """Write the state to one file, atomically and without pickle."""
        facts, arrays = self._state()
        header = {
            "format": STATE_FORMAT,
            "version": STATE_VERSION,
            "method": self.method,
            "settings": self._all_settings(),
            "last_round": self.last_round,
            "layout": None if self._schema is None else self._schema.to_json(),
            "ledger": self._ledger.to_json(),
            "facts": facts,
        }
        write_tensors(Path(path), {name: (array, array.dtype.name) for name, array in arrays.items()}, header)
        self._saved()

    def _saved(self) -> None:  # noqa: B027 (most have nothing to do)
        """Called when the state is on disk: whatever only earlier states needed may be deleted."""

    def restore(self, path: str | Path) -> None:
        """Continue from the state of an assessor with the same method and settings."""
        if self._fresh is None and self.last_round is None:
            self._fresh = self._state()
        tensors, header = read_tensors(Path(path))
        form = (header.get("format"), header.get("version")) if isinstance(header, dict) else None
        if form != (STATE_FORMAT, STATE_VERSION):
            raise BadFile(f"{path} holds no assessor state that this version of fedcoast can read")
        try:
            theirs = translated(header["method"], header["settings"])
            self._check_settings(path, {"method": header["method"], **theirs})
            ledger, last_round = Ledger.from_json(header["ledger"]), header["last_round"]
            schema = None if header["layout"] is None else ModelSchema.from_json(header["layout"])
            if last_round is not None and type(last_round) is not int:
                raise TypeError(f"last_round {last_round!r}")
            self._restore(header["facts"], {name: read(array)[0] for name, array in tensors.items()})
        except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
            if isinstance(error, FedcoastError):
                raise
            raise BadFile(f"{path} is not as an assessor saves it ({error!r}); it was altered") from error
        self._ledger, self.last_round, self._schema = ledger, last_round, schema

    def _check_settings(self, path: str | Path, theirs: dict[str, Any]) -> None:
        mine = {"method": self.method, **self._all_settings()}
        for option in (*mine, *theirs):
            if mine.get(option) != theirs.get(option):
                raise BadSetting(
                    f"{path} was saved with {option}={theirs.get(option)!r}; this assessor has"
                    f" {option}={mine.get(option)!r}. Make it with the same settings"
                )
