"""Attackers that push the model along one random direction of their own in every round."""

from fedcoast.simulation.attacks.view import Arrays, AttackView, length, random_update, scaled

STRENGTH = 3.0


def steering(view: AttackView) -> Arrays:
    """One random vector in every round, three times as long as an honest update; colluders share it."""
    direction = random_update(view.start, view.names, view.constant_random())
    return view.moved(scaled(direction, STRENGTH * length(view.honest_update) / length(direction)))
