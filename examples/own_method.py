"""A method of your own: how often a client's update has the sign of the round's mean update.

Run it with `python examples/own_method.py`: it keeps the contract of an assessor, and is compared with CoAst.
"""

import numpy as np

from fedcoast import METHODS, Assessor, BadSetting
from fedcoast.methods.comparison import compare
from fedcoast.testing import check_assessor, toy_rounds


class SignAgreement(Assessor):
    """Agreeing signs less opposing ones; entries that move less than `deadzone` have no sign."""

    method = "sign-agreement"

    def __init__(self, deadzone=0.0, bad_uploads="quarantine"):
        super().__init__(bad_uploads)
        if not isinstance(deadzone, int | float) or not 0 <= deadzone < float("inf"):
            raise BadSetting(f"deadzone must be a number of at least 0; got {deadzone!r}")
        self.deadzone = deadzone

    @property
    def settings(self):
        return {"deadzone": self.deadzone}

    def _step(self, view, state):
        start, names = view.start, [entry.name for entry in view.schema.trainable]  # no buffers, no counters
        total = {name: np.zeros(start[name].shape) for name in names}
        signs = {}
        for client, model in view.uploads():  # one client in memory at a time; bad uploads never come this far
            updates = {name: model[name].astype(np.float64) - start[name] for name in names}
            for name in names:
                total[name] += updates[name]
            signs[client] = {name: self._signs(updates[name]) for name in names}
        way = {name: self._signs(total[name] / max(1, len(signs))) for name in names}
        credits = {client: sum(int((own[name] * way[name]).sum()) for name in names) for client, own in signs.items()}
        return {view.number: credits}, state

    def _signs(self, updates):
        return (updates > self.deadzone).astype(np.int64) - (updates < -self.deadzone)


if __name__ == "__main__":
    check_assessor(SignAgreement)
    print("SignAgreement keeps the contract of an assessor.\n")
    print(compare(toy_rounds(), {"sign-agreement": SignAgreement(), "coast": METHODS["coast"].make()}))
