"""Every device there is; a machine without a GPU has one."""

import pytest
import torch

DEVICES = ["cpu"] + [name for name in ("cuda", "mps") if getattr(torch, name).is_available()]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param
