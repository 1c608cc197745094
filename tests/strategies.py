"""What the property tests draw from. Runs are derandomised, so that a failure is the same everywhere."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from federations import federation

steady = settings(derandomize=True, deadline=None, max_examples=20, database=None)

TARGETS = ("ballot", "pruned", "parameters", "update")
DRIFTS = ("movement", "votes")
SHAPES = ((), (1,), (7,), (3, 4), (2, 3, 2))

few = st.integers(1, 4)
seeds = st.integers(0, 2**32 - 1)
keeps = st.sampled_from([0.05, 0.1, 1 / 3, 0.5, 1.0])
dtypes = st.sampled_from([np.float16, np.float32, np.float64])


@st.composite
def federations(draw, rounds=few, clients=few, partial=True):
    """A list of rounds: some models coarse (ties, zeros), some clients away in some rounds."""
    names = tuple(range(draw(clients)))
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    away = draw(st.sets(st.tuples(st.integers(1, 6), st.sampled_from(names)), max_size=6)) if partial else set()
    return federation(
        seed=draw(seeds),
        rounds=draw(rounds),
        clients=names,
        layers={f"layer{place}": shape for place, shape in enumerate(shapes)},
        dtype=draw(dtypes),
        coarse=draw(st.sampled_from([None, 0.25])),
        present=lambda number, client: (number, client) not in away,
    )


@st.composite
def options(draw, **fixed):
    """Settings of CoAst."""
    drawn = {
        "keep": draw(keeps),
        "step": draw(st.sampled_from([0.02, 0.5, "avg"])),
        "horizon": draw(st.integers(1, 3)),
        "past_weight": draw(st.sampled_from([0, 0.25, 0.5, 1])),
        "signal": draw(st.sampled_from(TARGETS)),
        "reference": draw(st.sampled_from(DRIFTS)),
        "baseline": draw(st.sampled_from(["idle", "none"])),
        "layers": draw(st.sampled_from(["all", "first+head"])),
        "incomplete_rounds": draw(st.sampled_from(["drop", "truncate"])),
        "ulp_tolerance": draw(st.sampled_from([0, 4])),
        "score_rounds": draw(st.sampled_from([slice(None), slice(1, None), slice(-2, None), slice(0, 3)])),
    } | fixed
    smalls = ["one", "none"] if drawn["reference"] == "votes" else ["one", "none", "raw"]
    return {"tiny_layers": draw(st.sampled_from(smalls))} | drawn
