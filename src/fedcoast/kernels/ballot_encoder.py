"""Turns uploads into ballots: the votes of all layers of one model at a time, on all cores, in reused memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedcoast.kernels.ballots import Floats
from fedcoast.kernels.bit_planes import PlaneLayout, Planes, flat
from fedcoast.kernels.compiling import WORTHWHILE, kernels
from fedcoast.kernels.threads import ALONE, ThreadPool
from fedcoast.kernels.top_share import cast_ballot

SHARED = 1 << 16  # entries of a layer from which on all threads may work on it together


class BallotEncoder:
    """Turns uploads into bit planes of votes: `voters[layer]` entries of each layer vote, zeros never.

    `cast_layers` counts the encoded layers, `missed` those that needed a second pass because their bracket missed;
    results do not depend on either. `compiled` false leaves all work to NumPy, true waits for the compiler.
    """

    def __init__(self, plane_layout: PlaneLayout, voters: Sequence[int], compiled: bool | None = None) -> None:
        self.plane_layout, self.voters = plane_layout, tuple(voters)
        self.cast_layers = self.missed = 0
        self._large = sum(plane_layout.sizes) >= WORTHWHILE
        self._wanted, self._wait = self._large if compiled is None else compiled, compiled is True
        self._scratch: dict[object, _Scratch] = {}

    def cast(self, start: Sequence[Floats], local: Sequence[Floats], threads: ThreadPool = ALONE) -> Planes:
        """The votes on local − start; the layers of both are float32 or float64, and of the same type."""
        planes = self.plane_layout.empty_planes()
        layers = [
            _Layer(flat(after), flat(before), voters, into)
            for before, after, voters, into in zip(
                start, local, self.voters, self.plane_layout.layers(planes), strict=True
            )
            if voters > 0
        ]
        for dtype in {layer.dtype for layer in layers}:
            code = kernels(dtype.name, self._wait) if self._wanted else None
            of_type = sorted((layer for layer in layers if layer.dtype == dtype), key=lambda layer: -layer.size)
            missed = self._cast(of_type, dtype, code, threads if self._large else ALONE)
            self.missed += missed
        self.cast_layers += len(layers)
        return planes

    def _cast(self, layers: "list[_Layer]", dtype: "np.dtype[Any]", code: Any, threads: ThreadPool) -> int:
        fair = sum(layer.size for layer in layers) / threads.threads
        shared = code is not None and threads.threads > 1
        together = [layer for layer in layers if shared and layer.size >= max(SHARED, fair)]
        for place, layer in enumerate(together):
            layer.scratch = self._scratch_for((place, "shared"), dtype, layer.size)
        jobs = _assigned(layers[len(together) :], threads.threads)
        for thread, job in enumerate(jobs):
            for layer in job:
                layer.scratch = self._scratch_for(thread, dtype, job[0].size)
        missed = sum(threads.map(lambda job: sum(layer.cast(code) for layer in job), jobs))
        if together:
            threads.map(lambda layer: layer.bracket(code), together)
            parts = threads.threads

            def sweep(part: int) -> None:
                for layer in together:
                    layer.sweep(code, part, parts)

            threads.map(sweep, range(parts))
            missed += sum(threads.map(lambda layer: layer.settle(code), together))
        return missed

    def _scratch_for(self, user: object, dtype: "np.dtype[Any]", size: int) -> "_Scratch":
        scratch = self._scratch.get((user, dtype))
        if scratch is None or scratch.size < size:
            scratch = self._scratch[user, dtype] = _Scratch(size, dtype)
        return scratch


def _assigned(layers: "list[_Layer]", threads: int) -> "list[list[_Layer]]":
    """Assign layers to threads, the largest first, each to the thread with the least work."""
    jobs: list[list[_Layer]] = [[] for _ in range(threads)]
    loads = [0] * threads
    for layer in layers:
        thread = loads.index(min(loads))
        jobs[thread].append(layer)
        loads[thread] += layer.size
    return jobs


class _Scratch:
    """Scratch memory for one layer at a time. Usually only a few per cent of it is touched, and only that takes
    memory."""

    def __init__(self, size: int, dtype: "np.dtype[Any]") -> None:
        self.size = size
        self.near = np.empty(-(-size // 64), np.uint64)
        self.sizes = np.empty(size + 1, dtype)
        self.keys = self.sizes.view(f"u{dtype.itemsize}")
        self.spare = np.empty_like(self.keys)


class _Layer:
    """One tensor to encode; the compiled code encodes it whole, or in parts that threads share."""

    def __init__(self, local: Floats, start: Floats, voters: int, planes: Planes) -> None:
        self.local, self.start, self.voters, self.planes = local, start, voters, planes
        self.size, self.dtype = local.size, local.dtype
        self.scratch: _Scratch

    def cast(self, code: Any) -> int:
        """Whole; 1 if the bracket missed."""
        scratch = self.scratch
        if code is None:
            cast_ballot(self.local, self.start, self.voters, self.planes, scratch.sizes[: self.size])
            return 0
        up, down = self.planes
        return int(
            code.cast_ballot(
                self.local, self.start, self.voters, up, down, scratch.near, scratch.sizes, scratch.keys, scratch.spare
            )
        )

    def bracket(self, code: Any) -> None:
        scratch, number = self.scratch, self.dtype.type
        below, high, several = code.bracket(
            self.local, self.start, self.voters, scratch.sizes, scratch.keys, scratch.spare
        )
        self._bracket = number(below), number(high), several
        self._counted: dict[int, tuple[int, int, int]] = {}

    def sweep(self, code: Any, part: int, parts: int) -> None:
        first, last = (self.size * border // parts // 64 * 64 for border in (part, part + 1))
        last = self.size if part + 1 == parts else last
        words = slice(first // 64, -(-last // 64))
        up, down = self.planes[:, words]
        entries, scratch = slice(first, last), self.scratch
        self._counted[part] = (
            first,
            *code.sweep(
                self.local[entries],
                self.start[entries],
                *self._bracket,
                up,
                down,
                scratch.near[words],
                scratch.sizes[entries],
            ),
        )

    def settle(self, code: Any) -> int:
        """1 if the bracket missed, and all was done again."""
        (below, _, several), (up, down), scratch = self._bracket, self.planes, self.scratch
        above = inside = 0
        for first, above_here, inside_here in (self._counted[part] for part in sorted(self._counted)):
            if several:
                scratch.sizes[inside : inside + inside_here] = scratch.sizes[first : first + inside_here]
            above, inside = above + above_here, inside + inside_here
        settled = code.settle(
            self.size, self.voters, above, inside, below, several,
            up, down, scratch.near, scratch.sizes, scratch.keys, scratch.spare,
        )  # fmt: skip
        return 0 if settled else self.cast(code)
