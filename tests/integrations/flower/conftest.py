import logging

import pytest

from integrations.flower.handmade import as_a_task


@pytest.fixture(autouse=True)
def _task():
    as_a_task()


@pytest.fixture(autouse=True)
def _quiet():
    """Flower tells every step; a failing test should show what failed."""
    logger = logging.getLogger("flwr")
    before = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(before)
