"""Hundreds of folders are written and hundreds of uploads quarantined here: no waiting for a disk, no log of each."""

import logging
import os

import pytest


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(autouse=True, scope="module")
def _no_log():
    logger = logging.getLogger("fedcoast")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)
