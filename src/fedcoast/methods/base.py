"""The base class of every method: it observes rounds, and gives its answer at any time."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Protocol

from fedcoast.errors import BadFile, BadRound, BadSetting, Client, FedcoastError
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.layer_credits import LayerCredits
from fedcoast.methods.ledger import Credits, Ledger, scaled, totals
from fedcoast.rounds.arrays import Array, read
from fedcoast.rounds.round import Policy, Round, check_policy
from fedcoast.rounds.round_view import RoundView
from fedcoast.rounds.schema import ModelSchema
from fedcoast.storage.old_settings import translated
from fedcoast.storage.tensors import read_tensors, write_tensors

STATE_FORMAT = "fedcoast-state"
STATE_VERSION = 1


class Observer(Protocol):
    """Anything that observes rounds."""

    def observe(self, fl_round: Round, /) -> None: ...


class Assessor(ABC):
    """An observer that gives an `Assessment`. It never trains and never changes a model.

    `observe` uses a whole round or nothing of it: when it raises, the assessor is unchanged, and the corrected
    round can be observed again. An upload that cannot be used goes to "quarantine" (the client is left out of
    that round, logged and counted) or raises, as `bad_uploads` says.

    A method defines its `_step` (a round and the state so far in, credits and the new state out) and its `settings`. A
    method that keeps more than its credits also defines its `_initial_state` and how a state is saved (`_dump_state`,
    `_load_state`). A score is the sum of the client's credits unless `_scores` is overridden.
    """

    method: ClassVar[str]
    takes_ballots: ClassVar[bool] = False  # whether it accepts rounds that hold ballots instead of whole uploads
    remembers_everything: ClassVar[bool] = False  # whether its state has to grow with every round
    credits_absent: ClassVar[bool] = False  # whether it infers credits for rounds that a client missed

    def __init__(self, bad_uploads: Policy = "quarantine") -> None:
        check_policy(bad_uploads)
        self.bad_uploads = bad_uploads
        self.last_round: int | None = None
        self._schema: ModelSchema | None = None
        self._ledger = Ledger()
        self._state = self._initial_state()

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
        if self._schema is not None:
            if change := self._schema.differs(schema):
                raise BadRound(
                    f"round {fl_round.number}: the model changed its layers: {change}; start a new assessor, or keep"
                    " the credits and go on with new_segment()"
                )
            schema = self._schema  # in the order of the first round
        view = RoundView(fl_round, schema, self.bad_uploads, compare_with_start=True)
        credits, state = self._step(view, self._state)
        self._commit(state)
        self._ledger.enter(fl_round.number, fl_round.clients, view.quarantined, credits, view.unchanged)
        self._schema = schema
        self.last_round = fl_round.number

    def new_segment(self) -> None:
        """Keep the credits and forget the model: the next round may have other layers. Pending rounds get no credit."""
        if self._schema is not None:
            self._commit(self._initial_state())
            self._schema = None

    @abstractmethod
    def _step(self, view: RoundView, state: Any) -> tuple[Credits, Any]:
        """The credits that a round makes final, by round and client, and the state after it.

        Read `view.uploads()` to the end, one client at a time. Change neither the assessor nor `state`: the base class
        replaces the state once the step has succeeded. A method without a state returns the one it was given.
        """

    def _initial_state(self) -> Any:
        """The state before the first round."""
        return None

    def _commit(self, state: Any) -> None:
        """Continue from this state; what only the one before needed may be released."""
        self._state = state

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Every option with its value, as JSON can hold it."""

    def assessment(self) -> Assessment:
        """The current answer."""
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
        """The credits of each round; only those of pending rounds can still change."""
        return {number: dict(of) for number, of in self._ledger.credits.items()}

    def _factors(self) -> dict[Client, float]:
        """A factor for all credits of a client, which later rounds may change; empty for none."""
        return {}

    def _unordered(self) -> tuple[tuple[Client, Client], ...]:
        """The pairs of clients whose order the method cannot tell."""
        return ()

    def _counted_rounds(self, valued: tuple[int, ...]) -> tuple[int, ...] | None:
        """Which of the valued rounds the scores count; None for all."""
        return None

    def _by_layer(self) -> LayerCredits | None:
        """The scores by layer, where the method tracks them."""
        return None

    def _pending(self) -> tuple[int, ...]:
        """The rounds whose credit is not final."""
        return ()

    def _scores(self, sums: dict[Client, float]) -> dict[Client, float]:
        """From sums of credits to scores."""
        return sums

    def _dump_state(self, state: Any) -> tuple[dict[str, Any], dict[str, Array]]:
        """What must be saved besides the credits: values for JSON, and arrays."""
        return {}, {}

    def _load_state(self, facts: dict[str, Any], arrays: dict[str, Array]) -> Any:
        """The state that `_dump_state` was given."""
        if facts or arrays:
            raise BadFile(f"{self.method} stores only credits; this state holds more")
        return None

    def _all_settings(self) -> dict[str, Any]:
        return {**self.settings, "bad_uploads": self.bad_uploads}

    def save(self, path: str | Path) -> None:
        """Write the state to one file, atomically and without pickle."""
        facts, arrays = self._dump_state(self._state)
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
        """Called when the state is on disk: data that only earlier states needed may be deleted."""

    def restore(self, path: str | Path) -> None:
        """Continue from the state of an assessor with the same method and settings."""
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
            state = self._load_state(header["facts"], {name: read(array)[0] for name, array in tensors.items()})
        except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
            if isinstance(error, FedcoastError):
                raise
            raise BadFile(f"{path} is not as an assessor saves it ({error!r}); it was altered") from error
        self._resume(state)
        self._ledger, self.last_round, self._schema = ledger, last_round, schema

    def _resume(self, state: Any) -> None:
        """Continue from a state that was read from disk."""
        self._commit(state)

    def _check_settings(self, path: str | Path, theirs: dict[str, Any]) -> None:
        mine = {"method": self.method, **self._all_settings()}
        for option in (*mine, *theirs):
            if mine.get(option) != theirs.get(option):
                raise BadSetting(
                    f"{path} was saved with {option}={theirs.get(option)!r}; this assessor has"
                    f" {option}={mine.get(option)!r}. Make it with the same settings"
                )
