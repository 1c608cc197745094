"""Every option of CoAst, declared once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fedcoast.errors import BadSetting
from fedcoast.kernels.aggregation import Step
from fedcoast.methods.coast import explanation
from fedcoast.methods.configured import AssessorConfig
from fedcoast.methods.layer_selection import Layers, describe, layers_from_text
from fedcoast.methods.option_checks import check_count, is_number
from fedcoast.methods.options import option

Signal = Literal["ballot", "pruned", "parameters", "update"]
Reference = Literal["others", "movement", "votes"]
Baseline = Literal["idle", "none"]
IncompleteRounds = Literal["drop", "truncate"]
TinyLayers = Literal["one", "none", "raw"]


def _step_from_text(text: str) -> float | str:
    try:
        return text if text == "avg" else float(text)
    except ValueError:
        raise BadSetting(f"step must be a number or avg; got {text!r}") from None


def _rounds_from_text(text: str) -> slice:
    first, colon, last = text.partition(":")
    try:
        if colon:
            return slice(int(first) if first else None, int(last) if last else None)
    except ValueError:
        pass
    raise BadSetting(f"score_rounds must look like 10: or -50: or 5:100; got {text!r}")


def _rounds_from_json(ends: Any) -> Any:
    return slice(*ends) if isinstance(ends, list) else ends


@dataclass(frozen=True, kw_only=True)
class CoAstConfig(AssessorConfig):
    keep: float = option(0.10, "Share of each layer that votes.", "The paper's r, in (0, 1].")
    step: Step = option(
        0.02,
        "How far a vote moves a parameter, or avg.",
        'The paper\'s α; "avg" is the mean size of the updates that vote. It matters for signal "pruned" only.',
        from_text=_step_from_text,
    )
    horizon: int = option(
        1, "Number of later rounds that a credit needs.", "The paper's k. Rounds are counted as they are observed."
    )
    past_weight: float = option(
        0.42,
        "Share of the agreement with earlier rounds that is subtracted.",
        "0 to 1. Clients that merely repeat the recent direction are discounted.",
    )
    line_weight: float = option(
        7.0,
        "How strongly the better end is favoured where clients lie along a line; 0: not at all.",
        'Credits are multiplied by a factor for each client, with reference "others" only.',
    )
    signal: Signal = option(
        "ballot",
        "What is read off an upload and compared with the reference.",
        '"ballot" (the votes), "pruned" (sign of start + step·ballot), "parameters" (sign of the upload), "update"'
        " (sign of the raw update).",
    )
    reference: Reference = option(
        "others",
        "What the signal is compared with.",
        '"others" (the ballots of the other clients in the coming rounds), "movement" (where the global model went) or'
        ' "votes" (the majority of the ballots of the coming rounds).',
    )
    baseline: Baseline = option(
        "idle",
        "Whether an idle client's score is subtracted.",
        '"idle" subtracts what a client that returned the start model would have got, so that 0 means "did nothing";'
        ' "none" is the plain sum. It changes the signals "pruned" and "parameters" only.',
    )
    layers: Layers = option(
        "all",
        "Layers that count: all, head, first+head, or patterns such as 'fc.*,conv1.*'.",
        'In Python also a list of patterns, or a function of the name. "first+head" is the first layer and the'
        " classifier head.",
        from_text=layers_from_text,
        to_json=describe,
    )
    score_rounds: slice = option(
        slice(None),
        "Rounds that count in the scores: 10: (skip a warm-up), -50: (sliding window).",
        "In Python a slice of the valued rounds, such as slice(10, None).",
        from_text=_rounds_from_text,
        to_json=lambda rounds: [rounds.start, rounds.stop],
        from_json=_rounds_from_json,
    )
    incomplete_rounds: IncompleteRounds = option(
        "drop",
        "Rounds whose future is cut short: leave them pending, or value them provisionally.",
        '"truncate" values them with the future that there is; they stay pending.',
    )
    ulp_tolerance: float = option(
        4,
        "Movement of at most this many units in the last place counts as none.",
        "It is float rounding (of float32 for half floats). 4 suffices for ten clients; a server that adds up N float32"
        " models needs about N/2.",
    )
    tiny_layers: TinyLayers = option(
        "one",
        "Layers of which `keep` is less than one entry.",
        '"one" entry votes, "none" votes, or "raw" (the whole tensor is compared unpruned, as the public research code'
        " does).",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_numbers(self)
        describe(self.layers)
        _check_rounds(self.score_rounds)
        if self.tiny_layers == "raw" and self.reference == "votes":
            raise BadSetting('tiny_layers="raw" has no votes to count; use reference="movement"')
        if self.reference == "others" and self.signal not in ("ballot", "update"):
            raise BadSetting(
                'reference="others" compares ballots with ballots, or the signs of whole updates (signal="update");'
                f' got signal={self.signal!r}; use reference="movement"'
            )

    @property
    def dependence_span(self) -> int:  # the future of one round may be the past of another
        return 2 * self.horizon if self.past_weight else self.horizon

    @property
    def zero_is_idle(self) -> bool:
        return self.baseline == "idle" or self.signal in ("ballot", "update")

    @property
    def counts_votes(self) -> bool:  # with "others" it is a mean over clients
        return self.reference != "others"

    def score_meaning(self) -> str:
        return explanation.score_meaning(self.reference, self.past_weight)

    def explanation(self) -> tuple[str, ...]:
        return explanation.explanation(self.reference, self.horizon, self.past_weight)

    def counted(self, rounds: tuple[int, ...]) -> tuple[int, ...] | None:
        return None if self.score_rounds == slice(None) else rounds[self.score_rounds]


PAPER_OPTIONS: dict[str, Any] = {
    "reference": "movement", "horizon": 2, "past_weight": 0, "line_weight": 0, "layers": "all"
}  # fmt: skip
"""The paper's idea and no more."""

CoAstConfig.__doc__ = f"The options of CoAst.\n\n{CoAstConfig.described()}"


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What an assessor may use. It changes no score, and is not part of the settings in an answer.

    num_threads   threads that work on a large model; all cores by default
    spill_dir     a folder of its own for rounds that are pending; without it they are held in memory
    memory_limit  how much is held in memory before `spill_dir` is used: "500MB", or bytes; nothing by default
    track_layers  also sum up the credits by layer, which `Assessment.by_layer` then holds
    """

    num_threads: int | None = None
    spill_dir: str | Path | None = None
    memory_limit: str | int | None = None
    track_layers: bool = False


def _check_numbers(config: CoAstConfig) -> None:
    keep, step, past_weight = config.keep, config.step, config.past_weight
    if not is_number(keep) or not 0 < keep <= 1:
        hint = f" (did you mean {keep / 100:.2f}?)" if is_number(keep) and 1 < keep <= 100 else ""
        raise BadSetting(f"keep must lie in (0, 1], the share of each layer that votes; got {keep!r}{hint}")
    if not (isinstance(step, str) and step == "avg") and not (is_number(step) and float(step) > 0):
        raise BadSetting(f"step must be a positive number, how far a vote moves a parameter, or 'avg'; got {step!r}")
    check_count("horizon", config.horizon, 1, "the number of later rounds that a credit needs")
    if not is_number(past_weight) or not 0 <= past_weight <= 1:
        raise BadSetting(
            "past_weight must lie in [0, 1], the share of the agreement with earlier rounds that is subtracted;"
            f" got {past_weight!r}"
        )
    if not is_number(config.line_weight) or not 0 <= config.line_weight <= 100:
        raise BadSetting(
            "line_weight must lie in [0, 100], how strongly the better end of a line of clients is favoured;"
            f" got {config.line_weight!r}"
        )
    if not is_number(config.ulp_tolerance) or config.ulp_tolerance < 0:
        raise BadSetting(f"ulp_tolerance must be a number of at least 0; got {config.ulp_tolerance!r}")


def _check_rounds(rounds: object) -> None:
    ends = (rounds.start, rounds.stop, rounds.step) if isinstance(rounds, slice) else ("none",)
    if not all(end is None or type(end) is int for end in ends) or ends[-1] not in (None, 1):
        raise BadSetting(f"score_rounds must be a slice such as slice(10, None), in steps of one; got {rounds!r}")
