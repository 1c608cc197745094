"""The lab: the paper's federations, trained for real, as rounds. The one room that knows PyTorch."""
