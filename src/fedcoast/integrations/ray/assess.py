"""One assessment by many machines: split a recorded run into shards, score them anywhere, add up the credits."""

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedcoast import __version__
from fedcoast.errors import BadFile, FedcoastError
from fedcoast.integrations.ray.connection import ClusterError, connect
from fedcoast.integrations.ray.merge import bad_uploads, merge
from fedcoast.integrations.ray.shard_worker import ShardCredits, ShardFailure, ShardTask, score_shard
from fedcoast.integrations.ray.shards import plan
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.coast.coast import CoAst
from fedcoast.methods.coast.config import CoAstConfig
from fedcoast.methods.layer_selection import choose
from fedcoast.storage.replay import replay, round_numbers
from fedcoast.storage.run_folder import is_run

ShardResult = ShardCredits | ShardFailure
Work = Callable[[Sequence[ShardTask]], Iterator[tuple[int, ShardResult]]]
"""Scores tasks in any order; yields the index and the result of each."""

PIECES = 3  # shards for each core of a cluster: a short wait for the last ones
RETRIES = 5  # how often a shard is retried after its worker died


def assess_on_ray(
    run: str | Path, assessor: CoAst, address: str, on_shard: Callable[[int, int], object] = lambda done, of: None
) -> Assessment:
    """The assessment by `assessor` of all rounds of `replay(run)`, computed on a Ray cluster (see `connect`).

    Each worker reads the part of the run that it needs: all machines must see the folder under the same path and have
    this version of fedcoast. A worker that dies costs the time of its shard.
    """
    with connect(address) as ray:
        cores = int(ray.cluster_resources().get("CPU", 1))

        def work(tasks: Sequence[ShardTask]) -> Iterator[tuple[int, ShardResult]]:
            return _by_ray(ray, tasks)

        return assess_in_shards(Path(run).absolute(), assessor, PIECES * cores, work, on_shard)


def assess_in_shards(
    run: Path,
    assessor: CoAst,
    pieces: int,
    work: Work,
    on_shard: Callable[[int, int], object] = lambda done, of: None,
) -> Assessment:
    """The same, with any function that scores shards."""
    numbers, config = round_numbers(run), assessor.config
    if not numbers:
        return merge(assessor, (), (), {})
    schema = next(replay(run)).schema()
    chosen = {entry.name for entry in choose(config.layers, schema)}
    # Checkpoints of other tools cannot be read in part, so their models are not split.
    needs_models_before = config.past_weight and config.reference != "others"
    past = config.horizon + 1 if needs_models_before else 0  # the models around that many rounds
    shards = plan(schema, chosen, numbers, config.horizon, pieces, whole_models=not is_run(run), past=past)
    tasks = [ShardTask(run, schema, _shard_config(config), shard) for shard in shards]
    parts = _results(tasks, work, on_shard)
    found = bad_uploads(parts, assessor.bad_uploads)
    if found and config.reference == "votes":
        # A bad upload has no votes in any layer, but only the shard with the bad layer knew: score the others again.
        again = [place for place, shard in enumerate(shards) if found.keys() & {*shard.shown}]
        fresh = _results([replace(tasks[place], out=found) for place in again], work, on_shard)
        for place, part in zip(again, fresh, strict=True):
            parts[place] = part
    return merge(assessor, numbers, parts, found)


def _shard_config(config: CoAstConfig) -> CoAstConfig:
    """Options for the assessor of a shard; which rounds count is decided by `merge`."""
    return replace(config, score_rounds=slice(None), bad_uploads="quarantine", layers="all")


def _results(tasks: Sequence[ShardTask], work: Work, on_shard: Callable[[int, int], object]) -> list[ShardCredits]:
    done: dict[int, ShardResult] = {}
    for place, result in work(tasks):
        done[place] = result
        on_shard(len(done), len(tasks))
    parts = [done[place] for place in range(len(tasks))]
    refusals = [part for part in parts if isinstance(part, ShardFailure)]
    if refusals:
        raise min(refusals, key=lambda refusal: refusal.number).error
    return [part for part in parts if isinstance(part, ShardCredits)]


def _by_ray(ray: Any, tasks: Sequence[ShardTask]) -> Iterator[tuple[int, ShardResult]]:
    remote_score = ray.remote(_score_remotely).options(name="fedcoast shard", max_retries=RETRIES, num_cpus=1)
    waiting = {remote_score.remote(task, __version__): place for place, task in enumerate(tasks)}
    while waiting:
        (ready, *_), _ = ray.wait(list(waiting))
        try:
            result = ray.get(ready)
        except ray.exceptions.RayError as error:
            reason = str(getattr(error, "cause", None) or error).strip().splitlines()[-1]
            raise ClusterError(
                f"the cluster could not score a shard of the run ({type(error).__name__}: {reason});"
                " every machine needs this version of fedcoast and memory for the largest layer"
            ) from error
        yield waiting.pop(ready), result


def _score_remotely(task: ShardTask, version: str) -> ShardResult:
    """`score_shard` on another machine, which may have another version or lack the folder."""
    here = socket.gethostname()
    if version != __version__:
        return _failure(
            task, ClusterError(f"{here} has fedcoast {__version__}, this machine {version}; install the same")
        )
    if not task.run.is_dir():
        return _failure(task, BadFile(f"{task.run} is not on {here}; all machines must see it under this path"))
    return score_shard(task)


def _failure(task: ShardTask, error: FedcoastError) -> ShardFailure:
    return ShardFailure(task.shard.rounds[0], error)
