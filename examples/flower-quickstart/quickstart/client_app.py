"""A site. `identity_mod` tells the server which one, so that a site that restarts is still the same."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedcoast.integrations.flower import identity_mod
from quickstart.task import SITES, Net, site_data, train

app = ClientApp(mods=[identity_mod])


@app.train()
def fit(message: Message, context: Context) -> Message:
    partition, partitions = context.node_config["partition-id"], context.node_config["num-partitions"]
    net = Net()
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    data = site_data(partition, partitions)
    epochs = 0 if SITES[partition % len(SITES)].idle else context.run_config["local-epochs"]
    loss = train(net, data, epochs, context.run_config["learning-rate"])
    records = {
        "arrays": ArrayRecord(net.state_dict()),
        "metrics": MetricRecord({"train_loss": loss, "num-examples": len(data.dataset)}),
    }
    return Message(RecordDict(records), reply_to=message)
