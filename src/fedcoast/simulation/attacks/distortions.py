"""Attackers that train and then distort their upload."""

from fedcoast.errors import BadSetting
from fedcoast.simulation.attacks.free_riders import matched_noise
from fedcoast.simulation.attacks.view import Arrays, AttackView, scaled

POISON = -5.0


def sign_flip(view: AttackView) -> Arrays:
    """The honest update with its sign flipped."""
    return view.moved(scaled(view.honest_update, -1.0))


def times_tenth(view: AttackView) -> Arrays:
    """A tenth of the honest update."""
    return view.moved(scaled(view.honest_update, 0.1))


def times_5(view: AttackView) -> Arrays:
    """Five times the honest update."""
    return view.moved(scaled(view.honest_update, 5.0))


def times_100(view: AttackView) -> Arrays:
    """A hundred times the honest update."""
    return view.moved(scaled(view.honest_update, 100.0))


def poisoned_middle(view: AttackView) -> Arrays:
    """Honest in the first and last layers, minus five times the honest update in all between."""
    layers = list(dict.fromkeys(name.partition(".")[0] for name in view.names))
    middle = set(layers[1:-1])
    if not middle:
        raise BadSetting("the attack 'middle' needs a model with at least three layers, such as deep-mlp")
    honest = view.honest_update
    poisoned = scaled(honest, POISON)
    return view.moved({name: (poisoned if name.partition(".")[0] in middle else honest)[name] for name in honest})


def half_time(view: AttackView) -> Arrays:
    """Honest in the first half of the training, noise as long as the last global step after it."""
    return view.honest if 2 * view.number <= view.rounds else matched_noise(view)


def honest(view: AttackView) -> Arrays:
    """The honest upload; the attack lies in the data, in the claimed weight or in the copies."""
    return view.honest
