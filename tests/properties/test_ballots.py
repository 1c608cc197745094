import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from fedcoast.kernels.ballots import ballot, num_kept, pack, unpack
from fedcoast.kernels.movement import agreement, movement, votes
from strategies import keeps, steady

# Multiples of 1/1024 below 2^11: powers of two scale them without rounding.
exact = st.integers(-(2**21), 2**21).map(lambda number: number / 1024)
updates = arrays.arrays(np.float64, arrays.array_shapes(max_dims=3, max_side=8), elements=exact | st.just(0.0))
any_float = arrays.arrays(
    st.sampled_from([np.float16, np.float32, np.float64]),
    st.integers(1, 40),
    elements=st.floats(allow_nan=False, width=16),
)
signs = arrays.arrays(np.int8, st.integers(1, 60), elements=st.integers(-1, 1))


@steady
@given(any_float, keeps)
def test_a_ballot_has_one_vote_for_each_place_while_non_zeros_last(update, keep):
    cast = ballot(update, keep)
    assert set(cast.tolist()) <= {-1, 0, 1}
    assert np.count_nonzero(cast) == min(num_kept(update.size, keep), np.count_nonzero(update))


@steady
@given(any_float, keeps)
def test_nobody_who_is_left_out_of_a_ballot_had_a_larger_update(update, keep):
    cast = ballot(update, keep)
    if (cast != 0).any() and (cast == 0).any():
        assert np.abs(update[cast != 0]).min() >= np.abs(update[cast == 0]).max()


@steady
@given(updates, keeps)
def test_a_ballot_is_odd(update, keep):
    assert ballot(-update, keep).tolist() == (-ballot(update, keep)).tolist()


@steady
@given(updates, keeps, st.integers(-40, 40))
def test_a_ballot_is_blind_to_positive_scaling(update, keep, power):
    assert ballot(update * 2.0**power, keep).tolist() == ballot(update, keep).tolist()


@steady
@given(updates, keeps)
def test_a_larger_share_keeps_every_vote_of_a_smaller_one(update, keep):
    less, more = ballot(update, keep / 2), ballot(update, keep)
    assert (more[less != 0] == less[less != 0]).all()


@steady
@given(signs)
def test_packing_loses_nothing(cast):
    assert unpack(pack(cast), cast.size).tolist() == cast.tolist()


@steady
@given(st.lists(st.tuples(signs, st.integers(0, 2**32 - 1)), min_size=1, max_size=4))
def test_agreement_adds_up_over_layers_and_is_bounded_by_the_size_of_the_claim(layers):
    ways = [np.random.default_rng(seed).integers(-1, 2, size=signal.size).astype(np.int8) for signal, seed in layers]
    signals = [signal for signal, _ in layers]
    parts = [agreement(signal, way) for signal, way in zip(signals, ways, strict=True)]
    assert agreement(np.concatenate(signals), np.concatenate(ways)) == sum(parts)
    assert abs(sum(parts)) <= sum(int(np.abs(signal).sum()) for signal in signals)


@steady
@given(updates, st.integers(1, 5), st.randoms(use_true_random=False))
def test_votes_do_not_depend_on_the_order_of_the_ballots(update, clients, random):
    ballots = [ballot(np.roll(update, shift), 0.3) for shift in range(clients)]
    shuffled = random.sample(ballots, clients)
    assert votes(ballots).tolist() == votes(shuffled).tolist()


@steady
@given(updates, updates.filter(lambda update: update.size > 1), st.sampled_from([0, 4]))
def test_movement_is_odd_in_time(first, last, ulps):
    size = min(first.size, last.size)
    first, last = first.ravel()[:size], last.ravel()[:size]
    assert movement([first, last], ulps).tolist() == (-movement([last, first], ulps)).tolist()
