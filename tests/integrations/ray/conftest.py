"""Hundreds of folders are written here; waiting for a disk would only slow that down."""

import os

import pytest


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield
