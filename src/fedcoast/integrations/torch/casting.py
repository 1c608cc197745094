"""The ballot of one tensor in PyTorch, on the device that holds it, bit for bit that of `kernels.ballots.ballot`.

t = the m-th largest |δ|;  who is above t votes, then those equal to it from the lowest index up; a zero never
"""

import numpy as np
import torch
from numpy.typing import NDArray

from fedcoast.kernels.ballots import num_kept

HALVES = (torch.float16, torch.bfloat16)


def cast(start: torch.Tensor, local: torch.Tensor, keep: float) -> torch.Tensor:
    """Δ̃ of local − start, flat, as int8 on the tensors' device; half floats are subtracted in float32.

    >>> cast(torch.zeros(4), torch.tensor([2.0, -2.0, 2.0, 0.0]), keep=0.5).tolist()
    [1, -1, 0, 0]
    """
    update = (_arithmetic(local) - _arithmetic(start)).reshape(-1)
    size = update.abs()
    voters = num_kept(update.numel(), keep)
    least = size.topk(voters, sorted=False).values.min()  # which of several equals topk takes is the device's choice
    above, tied = size > least, size == least
    room = voters - above.sum()
    votes = above | (tied & (tied.cumsum(0) <= room))
    return torch.where(votes, update.sign(), 0).to(torch.int8)


def packed(ballot: torch.Tensor) -> NDArray[np.uint8]:
    """The ballot's two planes as `kernels.ballots.pack` makes them, packed before they leave the device.

    >>> packed(torch.tensor([1, 0, -1], dtype=torch.int8)).tolist()
    [[128], [32]]
    """
    bits = torch.nn.functional.pad(torch.stack([ballot > 0, ballot < 0]).to(torch.uint8), (0, -ballot.numel() % 8))
    places = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], dtype=torch.uint8, device=ballot.device)
    return np.asarray((bits.reshape(2, -1, 8) * places).sum(2, dtype=torch.uint8).cpu())


def _arithmetic(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.dtype in HALVES else tensor
