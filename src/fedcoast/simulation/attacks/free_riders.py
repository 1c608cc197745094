"""Attackers that train nothing: they upload the start, noise, or what they remember of earlier rounds."""

from fedcoast.simulation.attacks.view import Arrays, AttackView, combined, length, random_update, scaled

NOISE = 0.05
FIRST_LENGTH = 0.1  # of noise in the first round, when there is no step to match; about that of an honest update


def zero(view: AttackView) -> Arrays:
    """The start, unchanged."""
    return view.moved({})


def noise(view: AttackView) -> Arrays:
    """Gaussian noise of standard deviation 0.05 in every entry."""
    return view.moved(scaled(random_update(view.start, view.names, view.random), NOISE))


def matched_noise(view: AttackView) -> Arrays:
    """Gaussian noise as long as the last global step."""
    update = random_update(view.start, view.names, view.random)
    return view.moved(scaled(update, step_length(view) / length(update)))


def echo(view: AttackView) -> Arrays:
    """The last global step once more."""
    return _from_steps(view, (1.0,))


def mean_of_steps(view: AttackView) -> Arrays:
    """The mean of the last four global steps."""
    count = max(1, min(4, len(view.earlier)))
    return _from_steps(view, (1 / count,) * count)


def extrapolation(view: AttackView) -> Arrays:
    """Twice the last global step less the one before (ACE): where the model would go on a smooth path."""
    return _from_steps(view, (2.0, -1.0) if len(view.earlier) > 1 else (1.0,))


def reverse(view: AttackView) -> Arrays:
    """The last global step, backwards."""
    return _from_steps(view, (-1.0,))


def copy_same_round(view: AttackView) -> Arrays:
    """The upload of the best other client in the same round."""
    return view.uploads[min(client for client in view.uploads if client != view.client)]


def copy_last_round(view: AttackView) -> Arrays:
    """The best other client's upload of the round before."""
    others = [client for client in view.previous if client != view.client]
    return view.previous[min(others)] if others else zero(view)


def step_length(view: AttackView) -> float:
    """How far the global model moved last."""
    steps = view.last_steps(1)
    return length(steps[0]) if steps else FIRST_LENGTH


def _from_steps(view: AttackView, factors: tuple[float, ...]) -> Arrays:
    steps = view.last_steps(len(factors))
    return view.moved(combined(steps, factors[: len(steps)])) if steps else zero(view)
