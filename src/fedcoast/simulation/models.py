"""The networks of the paper, and three more: two small ones for demos and a common benchmark.

| name | what it is |
|---|---|
| mlp | flattened image – 32 – classes; for 8 × 8 digits |
| deep-mlp | flattened image – 32 – 32 – 32 – classes; small, with layers between the first and the last |
| tiny-resnet | the paper's TinyResNet: stem to 64 channels and one residual block |
| convnet | the paper's ConvNet (Zhao et al., Dataset Condensation, ICLR 2021): three blocks, instance norm |
| resnet4 | the paper's ResNet-4: stem and four residual blocks of 64, 128, 128 and 128 channels |
| resnet18 | ResNet-18 as used on CIFAR: 3 × 3 stem, batch norm, widths 64 to 512 |

The paper leaves strides and heads open; TinyResNet and ResNet-4 follow the public research code: the stem is a 7 × 7
convolution with stride 2 and no padding, ReLU, and max-pooling 3 × 3 with stride 3 (32 pixels become 4, 96 become 15);
a block adds relu(conv(relu(conv(x)))) to x; a 3 × 3 convolution widens 64 channels to 128; the linear head sees all
features, flattened. Neither has normalisation layers.
Layers have names (`stem`, `block1`, `head`, …), so that an assessment can be asked about some of them alone.
"""

from collections import OrderedDict
from collections.abc import Callable

import torch
from torch import Tensor, nn

from fedcoast.errors import BadSetting, unknown_word
from fedcoast.simulation.names import check_side

Builder = Callable[[int, int, int], nn.Module]


class PlainBlock(nn.Module):
    """x + relu(conv(relu(conv(x)))), the paper's ResBlock: 3 × 3 convolutions, one width, no normalisation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        inner: Tensor = torch.relu_(self.second(torch.relu_(self.first(images))))
        return images + inner


class NormedBlock(nn.Module):
    """relu(norm(conv(relu(norm(conv(x))))) + skip(x)), ResNet-18's block; the skip is 1 × 1 where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = _normed(inputs, outputs, 3, stride)
        self.second = _normed(outputs, outputs, 3, 1)
        same = stride == 1 and inputs == outputs
        self.skip = nn.Identity() if same else _normed(inputs, outputs, 1, stride)

    def forward(self, images: Tensor) -> Tensor:
        inner = torch.relu(self.first(images))
        return torch.relu(self.second(inner) + self.skip(images))


def _normed(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Module:
    # Batch norm subtracts the mean, so a bias before it would be a parameter without effect.
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    return _chain(conv=convolution, norm=nn.BatchNorm2d(outputs))


class Flat(nn.Flatten):
    """Flattens, and returns the gradient in channels-last layout, like the layers before it.

    The numbers are the same. Without it the pooling layer of TinyResNet has to reorder its whole gradient, which takes
    a sixth of a training step.
    """

    def forward(self, images: Tensor) -> Tensor:
        if images.requires_grad:
            images.register_hook(lambda gradient: gradient.contiguous(memory_format=torch.channels_last))  # type: ignore[no-untyped-call]
        return super().forward(images)


def _chain(**layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(OrderedDict(layers))


def _stem(channels: int) -> dict[str, nn.Module]:
    # ReLU after pooling, not before as in the research code: both orders give the same numbers and gradients, bit for
    # bit, since ReLU keeps the order of its inputs; this one has a ninth of the entries to go through.
    return {"stem": nn.Conv2d(channels, 64, 7, stride=2), "shrink": nn.MaxPool2d(3), "relu": nn.ReLU()}


def _after_stem(size: int) -> int:
    """The width of the image that the stem leaves."""
    return ((size - 7) // 2 + 1) // 3


def _flat_head(width: int, size: int, classes: int) -> dict[str, nn.Module]:
    return {"flat": Flat(), "head": nn.Linear(width * size * size, classes)}


def mlp(channels: int, size: int, classes: int) -> nn.Module:
    hidden = nn.Linear(channels * size * size, 32)
    return _chain(flat=nn.Flatten(), hidden=hidden, relu=nn.ReLU(), head=nn.Linear(32, classes))


def deep_mlp(channels: int, size: int, classes: int) -> nn.Module:
    widths = (channels * size * size, 32, 32, 32)
    layers: dict[str, nn.Module] = {"flat": nn.Flatten()}
    for number in (1, 2, 3):
        layers |= {f"hidden{number}": nn.Linear(widths[number - 1], widths[number]), f"relu{number}": nn.ReLU()}
    return _chain(**layers, head=nn.Linear(widths[-1], classes))


def tiny_resnet(channels: int, size: int, classes: int) -> nn.Module:
    return _chain(**_stem(channels), block1=PlainBlock(64), **_flat_head(64, _after_stem(size), classes))


def convnet(channels: int, size: int, classes: int) -> nn.Module:
    blocks: dict[str, nn.Module] = {}
    for number, inputs in enumerate((channels, 128, 128), 1):
        conv = nn.Conv2d(inputs, 128, 3, padding=1)
        # One group per channel: instance norm with a scale and a shift, and no running statistics.
        norm = nn.GroupNorm(128, 128)
        blocks[f"block{number}"] = _chain(conv=conv, norm=norm, relu=nn.ReLU(), pool=nn.AvgPool2d(2))
    return _chain(**blocks, flat=nn.Flatten(), head=nn.Linear(128 * (size // 8) ** 2, classes))


def resnet4(channels: int, size: int, classes: int) -> nn.Module:
    blocks: dict[str, nn.Module] = {"block1": PlainBlock(64), "widen": nn.Conv2d(64, 128, 3, padding=1)}
    blocks |= {f"block{number}": PlainBlock(128) for number in (2, 3, 4)}
    return _chain(**_stem(channels), **blocks, **_flat_head(128, _after_stem(size), classes))


def resnet18(channels: int, size: int, classes: int) -> nn.Module:
    layers: dict[str, nn.Module] = {"stem": _normed(channels, 64, 3, 1), "relu": nn.ReLU()}
    widths = ((64, 64), (64, 64), (64, 128), (128, 128), (128, 256), (256, 256), (256, 512), (512, 512))
    for number, (inputs, outputs) in enumerate(widths, 1):
        layers[f"block{number}"] = NormedBlock(inputs, outputs, stride=1 if inputs == outputs else 2)
    return _chain(**layers, pool=nn.AdaptiveAvgPool2d(1), flat=nn.Flatten(), head=nn.Linear(512, classes))


MODELS: dict[str, Builder] = {
    "mlp": mlp,
    "deep-mlp": deep_mlp,
    "tiny-resnet": tiny_resnet,
    "convnet": convnet,
    "resnet4": resnet4,
    "resnet18": resnet18,
}


# Memory layout of activations: GroupNorm is slow in channels-last, plain convolutions are fast in it.
MEMORY_FORMAT = dict.fromkeys(MODELS, torch.channels_last) | {"convnet": torch.contiguous_format}


def build(name: str, channels: int, size: int, classes: int, seed: int) -> nn.Module:
    """A freshly initialised network for square images: the same seed gives the same weights.

    PyTorch's own generator is left as it was, so building a model never changes what is drawn after it.
    """
    if name not in MODELS:
        raise unknown_word("model", name, MODELS)
    if channels < 1 or classes < 1:
        raise BadSetting(f"channels and classes must be at least 1; got {channels} and {classes}")
    check_side(name, size)
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed: it would also re-seed every GPU, which fork_rng does not restore here.
        torch.default_generator.manual_seed(seed)
        return MODELS[name](channels, size, classes)
