"""The fast encoder gives the readable ballot, bit for bit: with machine code and without, on any number of threads."""

import importlib.util
import logging
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcoast.errors import BadSetting
from fedcoast.kernels import ballot_encoder, compiling
from fedcoast.kernels.ballot_encoder import BallotEncoder
from fedcoast.kernels.ballots import ballot, num_kept
from fedcoast.kernels.bit_planes import PlaneLayout, to_signs
from fedcoast.kernels.threads import ThreadPool, threads_for

KEEPS = (0.001, 0.01, 0.05, 0.1, 0.29, 0.5, 0.9, 0.99, 1.0)
COARSE = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.1, 1e-45, -1e-45, 1e-39, 3e38, -3e38])
ways = pytest.mark.parametrize(("compiled", "threads"), [(False, 1), (True, 1), (False, 2), (True, 2)])


@pytest.fixture
def two_threads():
    with ThreadPool(2) as pool:
        yield pool


@pytest.fixture
def _everything_is_shared(monkeypatch):
    """Threads and machine code for the smallest layers too."""
    monkeypatch.setattr(ballot_encoder, "WORTHWHILE", 1)
    monkeypatch.setattr(ballot_encoder, "SHARED", 100)


def cast(start, local, keep, compiled, pool):
    plane_layout = PlaneLayout(tuple(layer.size for layer in start))
    planes = BallotEncoder(plane_layout, [num_kept(size, keep) for size in plane_layout.sizes], compiled).cast(
        start, local, pool
    )
    return [
        to_signs(part, size).tolist()
        for part, size in zip(plane_layout.layers(planes), plane_layout.sizes, strict=True)
    ], planes


def readable(start, local, keep):
    with np.errstate(over="ignore"):
        return [ballot(after - before, keep).tolist() for before, after in zip(start, local, strict=True)]


@pytest.mark.usefixtures("_everything_is_shared")
@ways
@settings(derandomize=True, deadline=None, max_examples=100, database=None)
@given(data=st.data())
def test_ties_zeros_denormals_and_huge_values_make_no_difference(compiled, threads, data):
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    sizes = data.draw(st.lists(st.sampled_from([1, 2, 63, 64, 65, 127, 128, 129, 300]), min_size=1, max_size=4))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    palette = np.array(data.draw(st.lists(COARSE, min_size=1, max_size=6)), dtype)
    start, local = ([rng.choice(palette, size) for size in sizes] for _ in range(2))
    keep = data.draw(st.sampled_from(KEEPS))
    with ThreadPool(threads) as pool:
        assert cast(start, local, keep, compiled, pool)[0] == readable(start, local, keep)


def layer(rng, kind, size):
    update = rng.standard_normal(size)
    if kind == "sorted":
        return np.sort(update)
    if kind == "mostly zero":
        return np.where(rng.random(size) < 0.95, 0, update)
    if kind == "equal":
        return rng.choice([-0.5, 0.5], size)
    if kind == "zero":
        return np.zeros(size)
    if kind == "on a grid":
        return np.round(update * 4) / 4
    if kind == "one hot":
        return np.eye(1, size, size // 2)[0]
    if kind == "denormal":
        return update * 1e-44
    if kind == "of two worlds":
        return np.where(rng.random(size) < 0.5, update * 1e37, update * 1e-40)
    if kind == "hot rows":
        return update * np.repeat(np.exp(3 * rng.standard_normal(size // 50 + 1)), 50)[:size]
    return update


LAYERS = ("gaussian", "sorted", "mostly zero", "equal", "zero", "on a grid", "one hot", "denormal", "of two worlds",
          "hot rows")  # fmt: skip
BORDERS = (1, 63, 64, 65, 2047, 2048, 2049, 2111, 2112, 4097, 20_000, 65_535, 65_536, 65_537)


@pytest.mark.usefixtures("_everything_is_shared")
@ways
def test_layers_of_every_kind_and_size_make_no_difference(compiled, threads):
    rng = np.random.default_rng(7)
    with ThreadPool(threads) as pool:
        for turn in range(25):
            for kind in LAYERS:
                dtype = (np.float32, np.float64)[turn % 2]
                sizes = rng.choice(BORDERS if turn % 5 == 0 else BORDERS[:11], 3)
                updates = [layer(rng, kind, size) for size in sizes]
                at_zero = kind in ("denormal", "of two worlds", "equal") or turn % 3 == 0
                start = [(np.zeros(size) if at_zero else rng.standard_normal(size)).astype(dtype) for size in sizes]
                local = [(before + update).astype(dtype) for before, update in zip(start, updates, strict=True)]
                keep = float(rng.choice(KEEPS))
                assert cast(start, local, keep, compiled, pool)[0] == readable(start, local, keep), (
                    kind,
                    sizes,
                    keep,
                )


@pytest.mark.usefixtures("_everything_is_shared")
@ways
def test_half_floats_widened_make_no_difference(compiled, threads, two_threads):
    rng = np.random.default_rng(1)
    start = [rng.normal(size=70_000).astype(np.float16).astype(np.float32)]
    local = [(start[0] + rng.normal(scale=0.01, size=70_000)).astype(np.float16).astype(np.float32)]
    for keep in KEEPS:
        found = cast(start, local, keep, compiled, two_threads if threads == 2 else ThreadPool())[0]
        assert found == readable(start, local, keep)


@pytest.mark.usefixtures("_everything_is_shared")
@ways
def test_layers_that_lie_scattered_or_cannot_be_written_make_no_difference(compiled, threads, two_threads):
    rng = np.random.default_rng(2)
    start = [rng.normal(size=(130, 90)).astype(np.float32).T, rng.normal(size=(40, 60)).astype(np.float32)[::2]]
    local = [np.asfortranarray(rng.normal(size=layer.shape).astype(np.float32)) for layer in start]
    unaligned = np.frombuffer(b"x" + rng.normal(size=300).astype(np.float32).tobytes(), np.float32, offset=1)
    start, local = [*start, unaligned], [*local, np.zeros(300, np.float32)]
    for array in (*start, *local):
        array.flags.writeable = False
    found = cast(start, local, 0.1, compiled, two_threads if threads == 2 else ThreadPool())[0]
    assert found == readable(start, local, 0.1)


@pytest.mark.usefixtures("_everything_is_shared")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_bracket_that_misses_costs_a_second_pass_and_nothing_else(threads):
    """Every sampled run is quiet or loud by design: what is sampled says nothing about the rest."""
    module = compiling.kernels("float32", wait=True)
    size, dtype = 50_000, np.float32
    looked_at = np.zeros(size, bool)

    sizes = np.empty(size + 1, dtype)
    places = np.arange(size, dtype=dtype)  # a layer whose update at i is i + 1 tells which entries were sampled
    update = places + 1
    update.flags.writeable = False
    zero = np.zeros(size, dtype)
    zero.flags.writeable = False
    module.bracket(update, zero, 5000, sizes, sizes.view(np.uint32), np.empty(size + 1, np.uint32))
    count = int(size ** (2 / 3)) // module.RUN * module.RUN
    looked_at[sizes[:count].astype(int) - 1] = True
    for loud_where_sampled in (True, False):
        rng = np.random.default_rng(0)
        local = np.where(looked_at == loud_where_sampled, 100, 1) * rng.random(size).astype(dtype)
        local = local.astype(dtype)
        plane_layout = PlaneLayout((size,))
        taker = BallotEncoder(plane_layout, [5000], True)
        with ThreadPool(threads) as pool:
            planes = taker.cast([zero], [local], pool)
        assert (taker.missed, taker.cast_layers) == (1, 1)
        assert to_signs(planes, size).tolist() == ballot(local, 0.1).tolist()


@pytest.mark.usefixtures("_everything_is_shared")
def test_machine_code_is_made_for_what_was_foreseen_and_nothing_else(two_threads):
    for kind in ("float32", "float64"):
        assert compiling.kernels(kind, wait=True) is compiling.kernels(kind)
    module = compiling.kernels("float32")
    rng = np.random.default_rng(3)
    for dtype in (np.float32, np.float64):
        start = [rng.normal(size=size).astype(dtype) for size in (10, 5000)]
        for pool in (ThreadPool(), two_threads):
            cast(start, [2 * layer for layer in start], 0.1, True, pool)
    for kernel in (module.bracket, module.sweep, module.settle, module.cast_ballot):
        assert len(kernel.signatures) == 2


def test_a_vote_for_nobody_and_a_vote_for_everyone():
    start, local = [np.zeros(3, np.float32)] * 2, [np.float32([1, 0, -1])] * 2
    for compiled in (False, True):
        planes = BallotEncoder(PlaneLayout((3, 3)), [0, 3], compiled).cast(start, local)
        assert planes.tolist() == [[0, 1], [0, 4]]


@pytest.fixture
def _nothing_ready(monkeypatch):
    monkeypatch.setattr(compiling, "_ready", {})
    monkeypatch.setattr(compiling, "_threads", {})


@pytest.mark.usefixtures("_nothing_ready")
def test_without_numba_numpy_takes_over(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "numba" else found(name))
    assert compiling.kernels("float32", wait=True) is None
    start, local = [np.zeros(3, np.float32)], [np.float32([1, 0, -2])]
    assert cast(start, local, 0.4, True, ThreadPool())[0] == [[0, 0, -1]]


@pytest.mark.usefixtures("_nothing_ready")
def test_a_failing_compiler_is_reported_and_numpy_takes_over(monkeypatch, caplog):
    def fail(name, *_):
        raise OSError(f"no {name} today")

    monkeypatch.setattr(importlib, "import_module", fail)
    with caplog.at_level(logging.WARNING, logger="fedcoast"):
        assert compiling.kernels("float64", wait=True) is None
    assert "kernels unavailable; falling back to NumPy (OSError: no fedcoast.kernels.compiled today)" in caplog.text
    start, local = [np.zeros(3)], [np.array([1.0, 0, -2])]
    assert cast(start, local, 0.4, True, ThreadPool())[0] == [[0, 0, -1]]


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True])
def test_a_number_of_threads_that_is_none_is_refused(threads):
    with pytest.raises(BadSetting, match="threads must be an integer of at least 1"):
        threads_for(threads)
    assert threads_for(None) >= 1


@pytest.mark.slow
def test_a_cold_start_waits_for_no_compiler_and_works_where_nothing_can_be_written(tmp_path):
    """A fresh process, no cache and no place for one: the first ballot comes from NumPy, a later one from the code."""
    code = """
import time
import numpy as np
from fedcoast.kernels import compiling
from fedcoast.kernels.ballot_encoder import BallotEncoder
from fedcoast.kernels.bit_planes import PlaneLayout
rng = np.random.default_rng(0)
size = 200_000
start, local = [np.zeros(size, np.float32)], [rng.normal(size=size).astype(np.float32)]
encoder = BallotEncoder(PlaneLayout((size,)), [size // 10])
before = time.perf_counter()
first = encoder.cast(start, local)
waited = time.perf_counter() - before
assert compiling.kernels("float32") is None
assert compiling.kernels("float32", wait=True) is not None
assert (encoder.cast(start, local) == first).all()
print(waited)
"""
    nowhere = {"NUMBA_CACHE_DIR": "/proc/nowhere", "PATH": "", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], env=nowhere, capture_output=True, text=True)
    assert done.stderr == ""
    assert float(done.stdout) < 2


WATCHED = """
import os, sys, threading

replaced = []

class Watched(type(sys)):
    def __setattr__(self, name, value):
        if name == "stdout":
            replaced.append(threading.current_thread().name)
        super().__setattr__(name, value)

sys.__class__ = Watched
from fedcoast.kernels import compiling
compiling.kernels("float32", wait=True)
assert "numba" in sys.modules
assert not [name for name in os.environ if name.startswith("NUMBA_DISABLE")]
assert replaced == [], replaced
"""


def test_the_compiler_in_the_background_never_replaces_the_standard_output():
    pytest.importorskip("colorama")  # numba highlights its messages through it, and that replaces sys.stdout
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_DISABLE")}
    done = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
