"""Who is who: from the best evidence to the weakest, aliases on purpose only, and never two in one."""

import time

import pytest
from flwr.app import Context, RecordDict
from flwr.serverapp.strategy import FedAvg

from fedcoast import BadSetting, CoAst
from fedcoast.errors import FedcoastError
from fedcoast.integrations.flower import Identity, Observed, Peer, identity_mod
from integrations.flower.handmade import (
    NODES_HAVE_NAMES,
    HandmadeGrid,
    Node,
    answer,
    ask,
    drifting,
    federation,
    record,
    small_model,
)

needs_node_names = pytest.mark.skipif(not NODES_HAVE_NAMES, reason="nodes of this Flower have no names")

KEY = b"-----a public key-----"


def watched(nodes, rounds=3, **options):
    coast = CoAst(horizon=1)
    strategy = Observed(FedAvg(), coast, **options)
    strategy.start(HandmadeGrid(nodes), record(small_model()), num_rounds=rounds)
    assert strategy.unobserved == {}
    return coast.assessment()


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        (Peer(7, "berlin", KEY, {"client-id": "paris", "partition-id": 3}), "berlin"),
        (Peer(7, "", KEY, {"client-id": "paris", "partition-id": 3}), "key-11289a1d90629ade"),
        (Peer(7, "", b"", {"client-id": "paris", "partition-id": 3}), "paris"),
        (Peer(7, "", b"", {"client-id": 5, "partition-id": 3}), "client-5"),
        (Peer(7, "", b"", {"client-id": 5.0}), "client-5"),
        (Peer(7, "", b"", {"client-id": "", "partition-id": 3}), "partition-3"),
        (Peer(7, "", b"", {"client-id": 0.5}), "node-7"),
        (Peer(7423646701073919812), "node-7423646701073919812"),
    ],
)
def test_the_best_evidence_names_the_client(peer, client):
    assert Identity(authenticated=True)(peer) == client


def test_a_key_that_is_drawn_at_every_start_names_nobody():
    assert Identity()(Peer(7, "", KEY, {"partition-id": 3})) == "partition-3"


def test_a_number_that_is_a_client_is_not_the_partition_of_that_number():
    identity = Identity()
    assert identity(Peer(1, metadata={"client-id": 3})) != identity(Peer(2, metadata={"partition-id": 3}))


def test_other_keys_can_be_agreed_on():
    assert Identity(claim="site")(Peer(1, metadata={"site": "oslo", "client-id": "x"})) == "oslo"
    assert Identity(partition="shard")(Peer(1, metadata={"shard": 2})) == "partition-2"


@needs_node_names
def test_registered_names_are_read_from_the_grid():
    nodes = {1: Node(drifting(1), name="berlin"), 2: Node(drifting(2), public_key=KEY), 3: Node(drifting(3))}
    answer = watched(nodes, identity=Identity(authenticated=True))
    assert answer.clients == ("berlin", "key-11289a1d90629ade", "node-3")


def test_a_restarted_node_is_the_same_client_if_it_says_so():
    nodes = {i: Node(drifting(i), metadata={"partition-id": i}) for i in (1, 2)}
    coast = CoAst(horizon=1)
    strategy = Observed(FedAvg(), coast)
    arrays = strategy.start(HandmadeGrid(nodes), record(small_model()), num_rounds=2).arrays
    strategy.start(HandmadeGrid({1: nodes[1], 99: nodes[2]}), arrays, num_rounds=2)
    assert coast.assessment().rounds_scored == {"partition-1": 3, "partition-2": 3}


def test_a_node_that_returns_under_a_new_id_is_somebody_new_unless_joined():
    nodes = {1: Node(drifting(1)), 2: Node(drifting(2))}

    def clients(identity):
        coast = CoAst(horizon=1)
        strategy = Observed(FedAvg(), coast, identity=identity)
        arrays = strategy.start(HandmadeGrid(nodes), record(small_model()), num_rounds=2).arrays
        strategy.start(HandmadeGrid({1: nodes[1], 99: nodes[2]}), arrays, num_rounds=2)
        return coast.assessment().rounds_scored

    assert clients(None) == {"node-1": 3, "node-2": 2, "node-99": 1}
    assert clients(Identity(aliases={"node-99": "node-2"})) == {"node-1": 3, "node-2": 3}
    assert clients(Identity(aliases={2: "berlin", 99: "berlin"})) == {"berlin": 3, "node-1": 3}


@pytest.mark.parametrize(
    ("aliases", "text"),
    [
        ({"a": "b", "b": "c"}, "aliases leads from 'a' to 'b' and on to 'c'; map to the last one"),
        ({"a": ""}, "aliases maps a former identity to a client's name; got ''"),
        ({"a": 7}, "aliases maps a former identity to a client's name; got 7"),
    ],
)
def test_aliases_that_mean_nothing_are_refused(aliases, text):
    with pytest.raises(BadSetting, match=text):
        Identity(aliases=aliases)


def test_two_that_claim_one_identity_are_both_left_out_and_both_named():
    nodes = {i: Node(drifting(i), metadata={"partition-id": min(i, 3)}) for i in (1, 2, 3, 4)}
    answer = watched(nodes)
    assert answer.rounds_scored == {"partition-1": 2, "partition-2": 2, "partition-3": 0}
    reason = answer.quarantined[1]["partition-3"]
    assert "claimed by node-3 and node-4 in one round" in reason
    assert "own name" in reason


def test_neither_of_two_that_claim_one_identity_is_in_the_round():
    from fedcoast.integrations.flower.identity import NodeRegistry, resolve_clients
    from fedcoast.integrations.flower.replies import Upload

    resolution = resolve_clients(
        [Upload(i, metadata={"partition-id": i // 2}) for i in (0, 1, 2)], NodeRegistry(), Identity()
    )
    assert list(resolution.uploads) == ["partition-1"]
    assert list(resolution.rejections) == ["partition-0"]
    assert resolution.num_replies == 3


def test_a_join_that_meets_itself_is_refused_like_any_double():
    answer = watched({i: Node(drifting(i)) for i in (1, 2, 3)}, identity=Identity(aliases={"node-3": "node-2"}))
    assert answer.rounds_scored == {"node-1": 2, "node-2": 0}
    assert "claimed by node-2 and node-3" in answer.quarantined[2]["node-2"]


@needs_node_names
def test_a_registered_name_cannot_be_claimed_even_while_its_owner_is_away():
    impostor = Node(drifting(2), config={"client-id": "berlin"})
    owner = Node(lambda model, n: None if n == 2 else drifting(1)(model, n), name="berlin")
    answer = watched({1: owner, 2: impostor, 3: Node(drifting(3))}, rounds=3)
    assert "registered name of another node" in answer.quarantined[2]["node-2"]
    assert answer.rounds_scored["berlin"] == 1  # of rounds 1 and 2; it was away in 2
    assert answer.rounds_scored["node-2"] == 0


@needs_node_names
@pytest.mark.parametrize("claimed", ["berlin ", "Berlin", "berl\u0456n", "berlin\u200b", "ber lin", "berIin"])
def test_a_name_that_looks_like_a_registered_one_cannot_be_claimed(claimed):
    nodes = {1: Node(drifting(1), name="berlin"), 2: Node(drifting(2), config={"client-id": claimed})}
    answer = watched({**nodes, 3: Node(drifting(3))})
    assert "registered name" in answer.quarantined[1]["node-2"]
    assert answer.rounds_scored == {"berlin": 2, "node-2": 0, "node-3": 2}


def test_names_that_two_nodes_claim_forge_no_line_of_the_log(caplog):
    claimed = "x\n2026-11-18 INFO all clients verified\x1b[2J"
    nodes = {i: Node(drifting(i), config={"client-id": claimed} if i < 3 else {}) for i in (1, 2, 3)}
    answer = watched(nodes)
    assert "claimed by node-1 and node-2" in str(answer.quarantined[1])
    assert "x2026-11-18 INFO all clients verified[2J" in answer.clients
    assert "\x1b" not in caplog.text
    assert not [line for line in caplog.text.splitlines() if line.startswith("2026")]


@pytest.mark.parametrize("claimed", ["node-1", "partition-0", "client-7", "key-00"])
def test_a_form_that_is_derived_cannot_be_claimed(claimed):
    answer = watched({1: Node(drifting(1)), 2: Node(drifting(2), config={"client-id": claimed}), 3: Node(drifting(3))})
    assert "cannot be claimed" in answer.quarantined[1]["node-2"]
    assert answer.rounds_scored["node-1"] == 2


@pytest.mark.parametrize(
    "metadata", [{"partition-id": 1e300}, {"client-id": -1e300}, {"client-id": "x" * 100_000}], ids=str
)
def test_an_endless_identity_costs_only_whoever_claims_it(metadata):
    nodes = {1: Node(drifting(1)), 2: Node(drifting(2), metadata={}, config={}), 3: Node(drifting(3))}
    (key, value), *_ = metadata.items()
    (nodes[2].config if isinstance(value, str) else nodes[2].metadata)[key] = value
    for node in nodes.values():  # FedAvg wants the same metrics of everybody
        node.metadata.setdefault(key, 0.5) if not isinstance(value, str) else None
    answer = watched(nodes)
    assert answer.rounds_scored["node-1"] == answer.rounds_scored["node-3"] == 2
    assert len("".join(map(str, answer.clients))) < 100


def test_a_claim_of_many_megabytes_is_refused_at_once():
    peer, before = Peer(1, metadata={"client-id": "\u200b" * 30_000_000}), time.process_time()
    with pytest.raises(FedcoastError, match="at most 256 characters, this one 30,000,000"):
        Identity()(peer)
    assert time.process_time() - before < 1


def test_a_resolver_whose_names_are_too_long_costs_only_that_client():
    answer = watched({i: Node(drifting(i)) for i in (1, 2, 3)}, identity=lambda peer: "x" * 10 ** (peer.node_id * 2))
    assert "at most 256 characters" in answer.quarantined[1]["node-2"]
    assert answer.rounds_scored["x" * 100] == 2


def test_a_resolver_of_ones_own_may_fail_for_one_client():
    def own(peer):
        return {1: "berlin", 2: "oslo"}[peer.node_id]

    answer = watched({i: Node(drifting(i)) for i in (1, 2, 3)}, identity=own)
    assert answer.rounds_scored == {"berlin": 2, "node-3": 0, "oslo": 2}
    assert "cannot be identified" in answer.quarantined[1]["node-3"]


def test_a_grid_that_cannot_say_who_its_nodes_are_does_not_stop_a_federation(caplog):
    class Mute(HandmadeGrid):
        def get_nodes(self):
            raise ConnectionError("no answer")

    coast = CoAst(horizon=1)
    Observed(FedAvg(), coast).start(Mute(federation().nodes), record(small_model()), num_rounds=2)
    assert coast.assessment().clients == tuple(f"partition-{i}" for i in range(4))
    assert "no answer" in caplog.text


def test_the_mod_introduces_a_client_by_its_node_config_and_leaves_the_metrics_alone():
    context = Context(1, 1, {"client-id": "berlin", "partition-id": 2, "data": "/secret"}, RecordDict(), {})
    message = ask(5, record(small_model()))
    reply = identity_mod(message, context, lambda m, c: answer(m, small_model()))
    assert dict(reply.content["fedcoast.identity"]) == {"client-id": "berlin", "partition-id": 2}
    assert dict(reply.content["metrics"]) == {"num-examples": 10}


def test_an_introduced_client_keeps_its_name():
    def node(i, name):
        context = Context(1, i, {"client-id": name}, RecordDict(), {})
        return Node(drifting(i), mods=(identity_mod,), context=context)

    assert watched({1: node(1, "berlin"), 2: node(2, "oslo")}).clients == ("berlin", "oslo")
