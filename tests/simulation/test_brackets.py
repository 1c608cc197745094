"""On updates of real training, whatever the optimiser and the precision, the sampled bracket seldom misses."""

import pytest
import torch
from sklearn.datasets import load_digits

from fedcoast.kernels.ballot_encoder import BallotEncoder
from fedcoast.kernels.ballots import num_kept
from fedcoast.kernels.bit_planes import PlaneLayout

pytestmark = pytest.mark.slow


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 8, 8)), torch.nn.Conv2d(1, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3),
        torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(1024, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10),
    )  # fmt: skip


def uploads(optimiser, images, labels, clients=3, rounds=4, steps=2):
    """Start and upload of each client and round, the model averaged in between."""
    model = network()
    for number in range(rounds):
        start = [parameter.detach().clone() for parameter in model.parameters()]
        sent = []
        for client in range(clients):
            with torch.no_grad():
                for parameter, before in zip(model.parameters(), start, strict=True):
                    parameter.copy_(before)
            teacher = optimiser(model.parameters())
            for step in range(steps):
                batch = slice((number * steps + step) * 32 % 400 + client * 400, None)
                loss = torch.nn.functional.cross_entropy(model(images[batch][:32]), labels[batch][:32])
                teacher.zero_grad()
                loss.backward()
                teacher.step()
            sent.append([parameter.detach().clone() for parameter in model.parameters()])
            yield start, sent[-1]
        with torch.no_grad():
            for parameter, *of_clients in zip(model.parameters(), *sent, strict=True):
                parameter.copy_(torch.stack(of_clients).mean(0))


OPTIMISERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05),
    "small steps": lambda parameters: torch.optim.SGD(parameters, lr=1e-4),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.02, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
}


def test_the_bracket_misses_less_than_one_layer_in_a_hundred():
    digits = load_digits()
    images, labels = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
    sizes = tuple(parameter.numel() for parameter in network().parameters())
    bracketed = 0
    encoders = [
        BallotEncoder(PlaneLayout(sizes), [num_kept(size, keep) for size in sizes], compiled=True)
        for keep in (0.01, 0.05, 0.1, 0.3)
    ]
    for optimiser in OPTIMISERS.values():
        for start, local in uploads(optimiser, images, labels):
            for precision in (torch.float32, torch.float16, torch.bfloat16):
                before, after = ([layer.to(precision).float().numpy() for layer in one] for one in (start, local))
                for encoder in encoders:
                    encoder.cast(before, after)
                    bracketed += sum(size > 2048 for size in sizes)
    missed = sum(encoder.missed for encoder in encoders)
    assert bracketed > 1500
    assert missed < 0.01 * bracketed, f"{missed} of {bracketed}"
