"""A shard is neighbouring layers in a span of rounds; together they are the whole run, once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcoast.integrations.ray.shards import plan
from fedcoast.rounds.schema import LayerSpec, ModelSchema
from strategies import steady


def layout_of_sizes(*sizes):
    return ModelSchema(tuple(LayerSpec(f"layer{place}", (size,), "float32", True) for place, size in enumerate(sizes)))


def names(schema):
    return {entry.name for entry in schema.entries}


@steady
@given(
    st.lists(st.integers(1, 10_000), min_size=1, max_size=12),
    st.data(),
    st.integers(1, 30),
    st.integers(1, 4),
    st.integers(1, 20),
    st.booleans(),
)
def test_every_layer_of_every_round_is_in_one_shard_with_its_whole_horizon(sizes, data, rounds, horizon, pieces, whole):
    schema, numbers = layout_of_sizes(*sizes), list(range(3, 3 * rounds + 3, 3))
    chosen = data.draw(st.sets(st.sampled_from(sorted(names(schema))), min_size=1))
    shards = plan(schema, chosen, numbers, horizon, pieces, whole)
    cells = [(layer, number) for shard in shards for layer in shard.layers for number in shard.rounds]
    assert sorted(cells) == sorted((entry.name, number) for entry in schema.entries for number in numbers)
    for shard in shards:
        assert shard.chosen == tuple(layer for layer in shard.layers if layer in chosen)
        assert shard.chosen
        last = numbers.index(shard.rounds[-1])
        assert shard.future == tuple(numbers[last + 1 : last + 1 + horizon])
    order = [layer for shard in shards for layer in shard.layers]
    assert list(dict.fromkeys(order)) == [entry.name for entry in schema.entries]


def test_many_layers_are_cut_by_layers_alone():
    schema = layout_of_sizes(*[100] * 12)
    shards = plan(schema, names(schema), range(1, 21), 2, pieces=6)
    assert [len(shard.layers) for shard in shards] == [2] * 6
    assert all(shard.rounds == tuple(range(1, 21)) and shard.future == () for shard in shards)


def test_a_layer_too_large_for_a_piece_is_cut_by_rounds_that_overlap():
    schema = layout_of_sizes(10, 10, 980)
    shards = plan(schema, names(schema), range(1, 13), 2, pieces=4)
    assert [(shard.layers, shard.rounds, shard.future) for shard in shards] == [
        (("layer0", "layer1"), tuple(range(1, 13)), ()),
        (("layer2",), (1, 2, 3), (4, 5)),
        (("layer2",), (4, 5, 6), (7, 8)),
        (("layer2",), (7, 8, 9), (10, 11)),
        (("layer2",), (10, 11, 12), ()),
    ]


def test_a_span_is_no_shorter_than_the_horizon_it_shares():
    schema = layout_of_sizes(100)
    assert len(plan(schema, names(schema), range(10), horizon=5, pieces=64)) == 2
    assert len(plan(schema, names(schema), range(3), horizon=5, pieces=64)) == 1


def test_a_model_that_cannot_be_read_in_part_is_cut_by_rounds_alone():
    schema = layout_of_sizes(50, 50)
    shards = plan(schema, names(schema), range(8), 1, pieces=4, whole_models=True)
    assert [shard.rounds for shard in shards] == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert all(shard.layers == ("layer0", "layer1") for shard in shards)


@pytest.mark.parametrize("pieces", [1, 5])
def test_no_rounds_are_no_shards(pieces):
    assert plan(layout_of_sizes(4), {"layer0"}, [], 2, pieces) == []
