"""Describes a round of a Flower server for the observer hub: the model sent, the uploads, the aggregated model."""

from collections.abc import Callable, Collection, Mapping
from typing import Literal

from fedcoast.errors import BadRound, BadSetting
from fedcoast.integrations.flower.ballot_upload import model_of_ballots
from fedcoast.integrations.flower.identity import ResolvedReplies
from fedcoast.integrations.flower.npy_layers import Layers, Unreadable, read_model
from fedcoast.integrations.flower.replies import Upload
from fedcoast.integrations.round_capture import ClientUpload, RoundCapture
from fedcoast.rounds.schema import Model

UploadKind = Literal["models", "differences"]


def capture_round(
    start: Layers,
    replies: ResolvedReplies,
    end: Layers | None,
    weighted_by: Collection[str] = ("num-examples",),
    factors: Mapping[str, float] | None = None,
    metrics: Mapping[str, object] | None = None,
    ballot_keeps: Collection[float] = (),
    uploads: UploadKind = "models",
) -> RoundCapture:
    """No `end` means that the strategy kept the old model. `weighted_by` names the metadata key of the weight.

    `ballot_keeps` holds the share of votes that the server requested, if any: a client's claim alone does not turn an
    upload into votes.
    """
    keep = _requested_keep(ballot_keeps)
    before = read_model(start)
    voted = any(one.ballots is not None and one.ballots.keep == keep for one in replies.uploads.values())
    return RoundCapture(
        start=before,
        uploads={
            client: ClientUpload(
                load=_loader(upload, start, before, keep),
                weight=next((upload.metadata[key] for key in weighted_by if key in upload.metadata), None),
                is_difference=uploads == "differences",
            )
            for client, upload in replies.uploads.items()
        },
        end=None if end is None else read_model(end),
        rejections=replies.rejections,
        metrics=metrics or {},
        factors=factors or {},
        num_replies=replies.num_replies,
        ballot_keep=keep if voted else None,
    )


def check_upload_kind(uploads: str) -> None:
    if uploads not in ("models", "differences"):
        raise BadSetting(f"uploads must be 'models' or 'differences', what clients send; got {uploads!r}")


def _loader(upload: Upload, start: Layers, before: Model, keep: float | None) -> Callable[[], Model]:
    def load() -> Model:
        layers, ballots = upload.layers(start), upload.ballots
        if ballots is None or keep is None:  # where nobody requested votes, the strategy reads them as a model too
            return read_model(layers)
        if ballots.keep != keep:
            raise Unreadable(
                f"votes of keep={keep} were requested; got keep={ballots.keep}: client and server must run the same"
                " version of fedcoast"
            )
        return model_of_ballots(layers, before, ballots)

    return load


def _requested_keep(ballot_keeps: Collection[float]) -> float | None:
    if len(ballot_keeps) > 1:
        raise BadRound(
            f"the server requested votes of different shares ({', '.join(map(str, sorted(ballot_keeps)))}); request one"
            " share of all clients"
        )
    return next(iter(ballot_keeps), None)
