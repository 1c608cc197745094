"""One assessment by many machines: shard a recorded run, value the shards anywhere, add up the same integers."""

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedcoast import __version__
from fedcoast.errors import BadFile, FedcoastError
from fedcoast.integrations.ray.connecting import LostWork, connect
from fedcoast.integrations.ray.merging import bad_uploads, merge
from fedcoast.integrations.ray.sharding import plan
from fedcoast.integrations.ray.valuing import Part, Refusal, Task, value
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.coast.coast import CoAst
from fedcoast.methods.layer_selection import choose
from fedcoast.storage.replay import replay, round_numbers
from fedcoast.storage.run_folder import is_run

Outcome = Part | Refusal
Work = Callable[[Sequence[Task]], Iterator[tuple[int, Outcome]]]
"""Values tasks in any order, and says which is done."""

PIECES = 3  # shards for each core of a cluster: the last ones to end then wait for each other only briefly
RETRIES = 5  # how often a shard is begun anew whose worker died


def assess_on_ray(
    run: str | Path, assessor: CoAst, address: str, on_shard: Callable[[int, int], object] = lambda done, of: None
) -> Assessment:
    """What `assessor` would say when shown all of `replay(run)`, worked out by a Ray cluster (see `connect`).

    The workers read the run themselves, each what it needs: all machines have to see the folder under the same path,
    and to have this version of fedcoast. A worker that dies midway costs the time of its shard.
    """
    with connect(address) as ray:
        cores = int(ray.cluster_resources().get("CPU", 1))

        def work(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
            return _by_ray(ray, tasks)

        return share_out(Path(run).absolute(), assessor, PIECES * cores, work, on_shard)


def share_out(
    run: Path,
    assessor: CoAst,
    pieces: int,
    work: Work,
    on_shard: Callable[[int, int], object] = lambda done, of: None,
) -> Assessment:
    """The same with anybody's `work` on the shards."""
    numbers = round_numbers(run)
    if not numbers:
        return merge(assessor, (), (), {})
    schema = next(replay(run)).schema()
    chosen = {entry.name for entry in choose(assessor.layers, schema)}
    # Of other people's checkpoints no part can be read, so their models are not cut.
    past = assessor.horizon + 1 if assessor.past else 0  # the models around that many rounds
    shards = plan(schema, chosen, numbers, assessor.horizon, pieces, whole_models=not is_run(run), past=past)
    tasks = [Task(run, schema, _options(assessor), shard) for shard in shards]
    parts = _outcomes(tasks, work, on_shard)
    found = bad_uploads(parts, assessor.bad_uploads)
    if found and assessor.drift == "votes":
        # A bad upload has no votes in any layer, and only the shard with the bad layer knew: the others count again.
        seen = [bool(found.keys() & {*shard.shown}) for shard in shards]
        again = [place for place, touched in enumerate(seen) if touched]
        fresh = _outcomes([replace(tasks[place], out=found) for place in again], work, on_shard)
        for place, part in zip(again, fresh, strict=True):
            parts[place] = part
    return merge(assessor, numbers, parts, found)


def _options(assessor: CoAst) -> dict[str, Any]:
    """What to make the same assessor of; what counts in the end is decided when all is put together.

    A shard is one core's work, and small enough for memory.
    """
    given = {name: getattr(assessor, name) for name in assessor.settings}
    return given | {"rounds": slice(None), "bad_uploads": "quarantine", "layers": "all", "threads": 1}


def _outcomes(tasks: Sequence[Task], work: Work, on_shard: Callable[[int, int], object]) -> list[Part]:
    done: dict[int, Outcome] = {}
    for place, outcome in work(tasks):
        done[place] = outcome
        on_shard(len(done), len(tasks))
    parts = [done[place] for place in range(len(tasks))]
    refusals = [part for part in parts if isinstance(part, Refusal)]
    if refusals:
        raise min(refusals, key=lambda refusal: refusal.number).error
    return [part for part in parts if isinstance(part, Part)]


def _by_ray(ray: Any, tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
    valued = ray.remote(_value_elsewhere).options(name="fedcoast shard", max_retries=RETRIES, num_cpus=1)
    waiting = {valued.remote(task, __version__): place for place, task in enumerate(tasks)}
    while waiting:
        (ready, *_), _ = ray.wait(list(waiting))
        try:
            outcome = ray.get(ready)
        except ray.exceptions.RayError as error:
            reason = str(getattr(error, "cause", None) or error).strip().splitlines()[-1]
            raise LostWork(
                f"the cluster could not value a shard of the run ({type(error).__name__}: {reason});"
                " every machine needs this version of fedcoast and memory for the largest layer"
            ) from error
        yield waiting.pop(ready), outcome


def _value_elsewhere(task: Task, version: str) -> Outcome:
    """`value` on another machine, where things may be different."""
    here = socket.gethostname()
    if version != __version__:
        return _refusal(task, LostWork(f"{here} has fedcoast {__version__}, and this is {version}; install the same"))
    if not task.run.is_dir():
        return _refusal(task, BadFile(f"{task.run} is not on {here}; all machines must see it under this path"))
    return value(task)


def _refusal(task: Task, error: FedcoastError) -> Refusal:
    return Refusal(task.shard.rounds[0], error)
