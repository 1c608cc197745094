"""The networks: sizes worked out by hand, shapes, repeatable initialisation, and that they learn."""

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from fedcoast.errors import BadSetting
from fedcoast.simulation import names
from fedcoast.simulation.datasets import NAMES as DATASETS
from fedcoast.simulation.datasets import load
from fedcoast.simulation.models import MODELS, build
from fedcoast.simulation.names import SMALLEST
from fedcoast.simulation.settings import SETTINGS

SHAPES = [(3, 32, 10), (1, 8, 10), (3, 96, 6), (3, 28, 100)]
CASES = [(name, *shape) for name in sorted(MODELS) for shape in SHAPES if shape[1] >= SMALLEST.get(name, 8)]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    # Networks this small gain nothing from a second thread, and on a busy machine wait for it.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def convolution(inputs: int, outputs: int, kernel: int, *, bias: bool = True) -> int:
    return inputs * outputs * kernel * kernel + bias * outputs


def linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs


def batch_normed(inputs: int, outputs: int, kernel: int) -> int:
    return convolution(inputs, outputs, kernel, bias=False) + 2 * outputs


def resnet18_count(channels: int, classes: int) -> int:
    count = batch_normed(channels, 64, 3) + 4 * batch_normed(64, 64, 3)
    for inputs, outputs in ((64, 128), (128, 256), (256, 512)):
        count += batch_normed(inputs, outputs, 3) + 3 * batch_normed(outputs, outputs, 3)
        count += batch_normed(inputs, outputs, 1)
    return count + linear(512, classes)


def expected_count(name: str, channels: int, size: int, classes: int) -> int:
    stem = convolution(channels, 64, 7)
    narrow, wide = convolution(64, 64, 3), convolution(128, 128, 3)
    left = {8: 0, 28: 3, 32: 4, 96: 15}[size]  # (size − 7) // 2 + 1, a third of it
    return {
        "mlp": linear(channels * size * size, 32) + linear(32, classes),
        "deep-mlp": linear(channels * size * size, 32) + 2 * linear(32, 32) + linear(32, classes),
        "tiny-resnet": stem + 2 * narrow + linear(64 * left**2, classes),
        "convnet": convolution(channels, 128, 3) + 2 * wide + 3 * 256 + linear(128 * (size // 8) ** 2, classes),
        "resnet4": stem + 2 * narrow + convolution(64, 128, 3) + 6 * wide + linear(128 * left**2, classes),
        "resnet18": resnet18_count(channels, classes),
    }[name]


def test_names_known_without_torch_are_those_of_the_lab() -> None:
    assert tuple(MODELS) == names.MODELS
    assert tuple(SETTINGS) == names.SETTINGS
    assert tuple(names.SIDES) == DATASETS
    assert load("digits").train_images.shape[1:3] == (names.SIDES["digits"],) * 2


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(("name", "channels", "size", "classes"), CASES)
def test_every_model_has_the_parameters_its_description_implies(
    name: str, channels: int, size: int, classes: int
) -> None:
    assert count(build(name, channels, size, classes, 0)) == expected_count(name, channels, size, classes)


def test_the_published_parameter_counts_come_out() -> None:
    assert count(build("mlp", 1, 8, 10, 0)) == 64 * 32 + 32 + 32 * 10 + 10
    assert count(build("tiny-resnet", 3, 32, 10, 0)) == 93_578
    assert count(build("convnet", 3, 32, 10, 0)) == 320_010
    assert count(build("resnet4", 3, 96, 10, 0)) == 1330698
    assert count(build("resnet18", 3, 32, 10, 0)) == 11_173_962


@pytest.mark.parametrize(("name", "channels", "size", "classes"), CASES)
def test_every_model_turns_a_batch_of_images_into_scores_per_class(
    name: str, channels: int, size: int, classes: int
) -> None:
    model = build(name, channels, size, classes, 0).eval()
    with torch.no_grad():
        scores = model(torch.rand(2, channels, size, size))
    assert scores.shape == (2, classes)
    assert scores.isfinite().all()


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_seed_fixes_every_weight(name: str) -> None:
    first, again, other = (build(name, 3, 32, 10, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert not torch.equal(first["head.weight"], other["head.weight"])


def test_building_a_model_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    build("tiny-resnet", 3, 32, 10, 0)
    assert torch.equal(torch.rand(3), expected)


def test_only_resnet18_keeps_state_besides_its_parameters() -> None:
    for name in MODELS:
        model = build(name, 3, 32, 10, 0)
        kinds = {type(module) for module in model.modules()}
        assert (nn.BatchNorm2d in kinds) == (name == "resnet18")
        assert (nn.GroupNorm in kinds) == (name == "convnet")
        assert bool(list(model.buffers())) == (name == "resnet18")


@pytest.mark.parametrize("name", ["mlp", "tiny-resnet", "convnet", "resnet4"])
def test_a_sample_is_scored_the_same_alone_and_in_a_batch(name: str) -> None:
    model = build(name, 3, 32, 10, 0)
    images = torch.rand(3, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(model(images)[:1], model(images[:1]), atol=1e-5, rtol=1e-4)


def test_convnet_normalises_each_channel_of_each_image() -> None:
    convnet = build("convnet", 3, 32, 10, 0)
    block = convnet.get_submodule("block1")
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        inner = block.get_submodule("norm")(block.get_submodule("conv")(images))
        torch.testing.assert_close(inner.mean((2, 3)), torch.zeros(2, 128), atol=1e-5, rtol=0)
        torch.testing.assert_close(inner.var((2, 3), correction=0), torch.ones(2, 128), atol=1e-2, rtol=0)


def test_the_stem_leaves_fifteen_of_ninety_six_pixels_and_the_blocks_keep_them() -> None:
    model = build("resnet4", 3, 96, 10, 0)
    assert isinstance(model, nn.Sequential)
    sizes = {}
    images = torch.rand(1, 3, 96, 96)
    with torch.no_grad():
        for name, layer in model.named_children():
            images = layer(images)
            sizes[name] = tuple(images.shape[1:])
    assert sizes["shrink"] == (64, 15, 15)
    assert [sizes[f"block{number}"] for number in (1, 2, 3, 4)] == [(64, 15, 15)] + [(128, 15, 15)] * 3


def test_the_papers_block_adds_to_its_input() -> None:
    block = build("tiny-resnet", 3, 32, 10, 0).get_submodule("block1")
    images = torch.randn(1, 64, 4, 4)
    with torch.no_grad():
        assert ((block(images) - images) >= 0).all()
        assert (block(images) < 0).any()


@pytest.mark.parametrize("name", ["mlp", "tiny-resnet", "resnet4"])
def test_models_without_normalisation_learn_from_their_first_weights(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(40) % 4
    patterns = torch.rand(4, 1, 16, 16, generator=generator)
    images = patterns[labels] + 0.2 * torch.randn(40, 1, 16, 16, generator=generator)
    model = build(name, 1, 16, 4, 0)
    optimiser = torch.optim.Adam(model.parameters(), 0.002)
    for _ in range(30):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(images - 0.5), labels)
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.2


@pytest.mark.parametrize(
    ("name", "channels", "size", "classes", "words"),
    [
        ("resnet", 3, 32, 10, "model must be one of mlp, deep-mlp, tiny-resnet, .*; got 'resnet'"),
        ("mlp", 0, 32, 10, "at least 1; got 0 and 10"),
        ("mlp", 3, 32, 0, "at least 1; got 3 and 0"),
        ("convnet", 3, 7, 10, "at least 8 × 8 pixels; got 7 × 7"),
        ("tiny-resnet", 1, 8, 10, "tiny-resnet needs images of at least 11 × 11 pixels; got 8 × 8"),
    ],
)
def test_impossible_models_are_refused(name: str, channels: int, size: int, classes: int, words: str) -> None:
    with pytest.raises(BadSetting, match=words):
        build(name, channels, size, classes, 0)


def test_flattening_hands_the_gradient_back_channels_last_and_changes_no_number() -> None:
    ours, plain = build("tiny-resnet", 3, 32, 10, seed=1), build("tiny-resnet", 3, 32, 10, seed=1)
    plain.flat = nn.Flatten()
    batch = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(2))
    strides = []
    for model in (ours, plain):
        model.to(memory_format=torch.channels_last)
        model.block1.register_full_backward_hook(lambda layer, gone, came: strides.append(came[0].stride()))
        model(batch.to(memory_format=torch.channels_last)).square().sum().backward()
    assert strides[0] == (1024, 1, 256, 64)
    assert strides[1] == (1024, 16, 4, 1)
    for one, other in zip(ours.parameters(), plain.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad)


def test_relu_after_pooling_gives_the_bits_of_relu_before_it():
    images = torch.randn(20, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    outputs, gradients = [], []
    for order in (("stem", "shrink", "relu"), ("stem", "relu", "shrink")):
        model = build("tiny-resnet", 3, 32, 10, seed=0)
        assert [name for name, _ in model.named_children()][:3] == ["stem", "shrink", "relu"]
        layers = dict(model.named_children())
        output = images
        for name in (*order, "block1", "flat", "head"):
            output = layers[name](output)
        output.square().sum().backward()
        outputs.append(output)
        gradients.append({name: parameter.grad for name, parameter in model.named_parameters()})
    assert torch.equal(*outputs)
    assert all(torch.equal(gradients[0][name], gradients[1][name]) for name in gradients[0])
