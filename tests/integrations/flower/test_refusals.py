"""What cannot be assessed is refused in words that say why and what to do; training goes on in every case."""

from contextlib import suppress

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.exception import InconsistentMessageReplies
from flwr.serverapp.strategy import FedAvg

from fedcoast import BadSetting, CoAst
from fedcoast.integrations.flower import Observed
from fedcoast.integrations.flower.npy_layers import Unreadable, layers_of, view
from integrations.flower.handmade import HandmadeGrid, Node, answer, drifting, federation, record, small_model


class Keeps(FedAvg):
    """A strategy that understands whatever its clients send, and does not move."""

    def aggregate_train(self, server_round, replies):
        return None, MetricRecord({"replies": len(list(replies))})


def observe(change, rounds=2, strategy=None):
    """What the assessor says of clients whose reply is changed."""
    coast = CoAst(horizon=1)
    observed = Observed(strategy or Keeps(), coast)
    arrays, grid = record(small_model()), federation()
    for number in range(1, rounds + 1):
        messages = observed.configure_train(number, arrays, ConfigRecord(), grid)
        replies = [change(answer(m, drifting(i)(small_model(), number))) for i, m in enumerate(messages)]
        assert observed.aggregate_train(number, replies)[1]["replies"] == 4
    return coast.assessment(), observed


def refusal(change):
    found, observed = observe(change)
    assert observed.unobserved == {}
    reasons = set(found.quarantined[1].values())
    assert len(reasons) == 1
    assert len(found.quarantined[1]) == 4
    return reasons.pop()


def with_arrays(reply, arrays):
    reply.content["arrays"] = arrays
    return reply


def test_secure_aggregation_is_refused_before_it_starts():
    from flwr.server.workflow import SecAggPlusWorkflow, SecAggWorkflow

    for workflow in (SecAggPlusWorkflow(3, 2), SecAggWorkflow(0.5)):
        with pytest.raises(BadSetting, match="sees the sum of the updates and never one of them"):
            Observed(workflow, CoAst())


def test_a_legacy_strategy_is_sent_to_its_adapter():
    from flwr.server.strategy import FedAvg as OldFedAvg

    with pytest.raises(BadSetting, match=r"old API.*fedcoast\.integrations\.flower\.legacy\.ObservedLegacy"):
        Observed(OldFedAvg(), CoAst())


def test_a_reply_without_arrays_is_encrypted_or_secure():
    def change(reply):
        del reply.content["arrays"]
        reply.content["cipher"] = ConfigRecord({"blob": b"\x00\x01"})
        return reply

    assert "under secure aggregation or encryption the server cannot see an update" in refusal(change)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64])
def test_a_quantised_upload_is_refused(kind):
    def change(reply):
        arrays = {name: Array((array.numpy() * 9).astype(kind)) for name, array in reply.content["arrays"].items()}
        return with_arrays(reply, ArrayRecord(arrays))

    reason = refusal(change)
    assert f"is float32 in the global model and came as {np.dtype(kind)}: a quantised or encrypted upload" in reason


def test_an_upload_in_another_serialisation_is_refused():
    def change(reply):
        arrays = {name: Array("float32", array.shape, "tenseal", b"\x01" * 50) for name, array in small_model().items()}
        return with_arrays(reply, ArrayRecord(arrays))

    assert "serialised as 'tenseal', not as a plain NumPy array" in refusal(change)


def test_bytes_that_are_no_array_are_refused():
    def change(reply):
        arrays = {
            name: Array("float32", array.shape, "numpy.ndarray", b"\x01" * 50) for name, array in small_model().items()
        }
        return with_arrays(reply, ArrayRecord(arrays))

    assert "not one plain NumPy array" in refusal(change)


def test_objects_are_never_unpickled():
    import io
    import pickle

    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "|O", "fortran_order": False, "shape": (1,)})
    with pytest.raises(Unreadable, match="Python objects, which are never unpickled"):
        view(file.getvalue() + pickle.dumps(np.array([Trap()], object)))


def test_other_layer_names_are_refused_by_name():
    def change(reply):
        arrays = {f"module.{name}": array for name, array in reply.content["arrays"].items()}
        return with_arrays(reply, ArrayRecord(arrays))

    reason = refusal(change)
    assert "other layers than the global model: 'conv.weight' is missing and 'module.conv.weight' is not" in reason
    assert "the same layer names in every round" in reason


def test_a_global_model_that_grows_begins_a_new_segment(caplog):
    coast, grid = CoAst(horizon=1, past_weight=0), federation()
    observed = Observed(Keeps(), coast)
    for number in range(1, 7):
        model = small_model() if number <= 3 else {**small_model(), "new.bias": np.zeros(2, np.float32)}
        messages = observed.configure_train(number, record(model), ConfigRecord(), grid)
        observed.aggregate_train(number, [answer(m, drifting(i)(model, number)) for i, m in enumerate(messages)])
    assert observed.unobserved == {}
    assert "layer 'new.bias' was absent and is now float32 (2,). A new segment begins" in caplog.text
    assert sorted(coast.assessment().credits) == [1, 2, 4, 5], "round 3 was pending, and round 6 still is"


def test_another_shape_is_refused_by_its_name():
    def change(reply):
        arrays = {name: Array(array.numpy()[:2]) for name, array in reply.content["arrays"].items()}
        return with_arrays(reply, ArrayRecord(arrays))

    assert "'conv.weight' must have shape (8, 5); got (2, 5)" in refusal(change)


def test_one_client_has_nobody_to_be_compared_with(caplog):
    coast = CoAst(horizon=1)
    strategy = Observed(FedAvg(min_train_nodes=1, min_evaluate_nodes=1, min_available_nodes=1), coast)
    result = strategy.start(HandmadeGrid({1: Node(drifting(1))}), record(small_model()), num_rounds=3)
    assert not any("score" in key for metrics in result.train_metrics_clientapp.values() for key in metrics)
    assert caplog.text.count("only one client (node-1) has answered so far") == 1
    assert "there is nobody to compare it with" in caplog.text


def test_control_variates_beside_the_model_do_not_confuse():
    def change(reply):
        reply.content["control"] = record({"other": np.zeros(3, np.float32)})
        return reply

    found, _ = observe(change)
    assert not found.quarantined


def test_two_records_that_could_be_the_model_are_refused():
    def change(reply):
        reply.content["control"] = record(small_model())
        return reply

    assert "2 ArrayRecords with the layers of the global model" in refusal(change)


def test_a_fortran_array_and_a_scalar_are_read_as_they_are():
    matrix = np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3))
    for array in (matrix, np.array(3, np.int64), np.zeros((0, 4), np.float32)):
        found = view(Array(array).data)
        np.testing.assert_array_equal(found, array)
        assert found.dtype == array.dtype
        assert found.shape == array.shape


def test_layers_are_the_bytes_themselves():
    arrays = record(small_model())
    layers = layers_of(arrays)
    assert layers["fc.bias"] is arrays["fc.bias"].data
    arrays.pop("fc.bias")
    np.testing.assert_array_equal(view(layers["fc.bias"]), small_model()["fc.bias"])


def test_a_message_without_content_is_no_reply():
    from fedcoast.integrations.flower.replies import uploads_in
    from integrations.flower.handmade import ask, failure

    message = ask(3, record(small_model()))
    assert uploads_in([failure(message)]) == []
    assert isinstance(Message(RecordDict(), reply_to=message), Message)


def spoiled(value):
    def change(content):
        arrays = {name: array.numpy() * np.float32(value) for name, array in content["arrays"].items()}
        content["arrays"] = ArrayRecord({name: Array(array) for name, array in arrays.items()})

    return change


def weighing(value):
    def change(content):
        content["metrics"]["num-examples"] = value

    return change


def with_layers(**layers):
    def change(content):
        arrays = {name: array for name, array in content["arrays"].items() if name not in layers}
        arrays |= {name: Array(array) for name, array in layers.items() if array is not None}
        content["arrays"] = ArrayRecord(arrays)

    return change


AVERAGED_IN = {
    "nan": (spoiled(np.nan), "must be finite"),
    "infinity": (spoiled(np.inf), "must be finite"),
    "a weight of nan": (weighing(float("nan")), "its weight must be a number ≥ 0; got nan"),
    "an infinite weight": (weighing(float("inf")), "its weight must be a number ≥ 0; got inf"),
    "a layer that is missing": (with_layers(**{"fc.bias": None}), "'fc.bias' is missing"),
    "a layer too many": (with_layers(extra=np.ones(2, np.float32)), "'extra' is not in the global model"),
}


@pytest.mark.parametrize(("change", "reason"), AVERAGED_IN.values(), ids=AVERAGED_IN.keys())
def test_a_broken_upload_that_fedavg_averages_in_names_its_client_and_the_next_round_is_observed(change, reason):
    coast = CoAst(horizon=1)
    observed, grid = Observed(FedAvg(), coast), federation()
    for number in range(1, 6):  # the server goes on from a model that is whole
        messages = observed.configure_train(number, record(small_model()), ConfigRecord(), grid)
        replies = [answer(m, drifting(i)(small_model(), number)) for i, m in enumerate(messages)]
        if number == 3:
            change(replies[1].content)
            culprit = f"node-{replies[1].metadata.src_node_id}"
        with suppress(InconsistentMessageReplies):  # FedAvg's own, for other layers
            observed.aggregate_train(number, replies)
    told = observed.unobserved.pop(3)["everyone"]
    assert reason in told
    assert told.count("client '") == 1, "only the culprit is named"
    assert f"client {culprit!r}" in told
    assert observed.unobserved == {}
    assert sorted(coast.assessment().credits) == [1, 2, 4]
