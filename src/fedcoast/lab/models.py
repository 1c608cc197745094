"""The networks of the paper, and two more: one small enough for a demo, one the field compares on.

| name | what it is |
|---|---|
| mlp | flattened image – 32 – classes; for 8 × 8 digits |
| tiny-resnet | the paper's TinyResNet: ResNet stem to 64 channels and one residual block |
| convnet | the paper's ConvNet (Zhao et al., Dataset Condensation, ICLR 2021): three blocks, instance norm |
| resnet4 | the paper's ResNet-4: ResNet stem and four residual blocks of 64, 128, 128 and 128 channels |
| resnet18 | ResNet-18 as used on CIFAR: 3 × 3 stem, batch norm, widths 64 to 512 |

The stem is that of He et al. (2016): 7 × 7 convolution with stride 2, ReLU, max-pooling 3 × 3 with stride 2
and padding 1; it leaves a quarter of the image size. TinyResNet and ResNet-4 have no normalisation layers. A
block halves the image size where its width changes, and only there (the paper leaves the strides open).
Layers have names (`stem`, `block1`, `head`, …), so that an assessment can be asked about some of them alone.
"""

from collections import OrderedDict
from collections.abc import Callable

import torch
from torch import Tensor, nn

from fedcoast.errors import BadSetting

Builder = Callable[[int, int, int], nn.Module]

SMALLEST = 8


class ResidualBlock(nn.Module):
    """relu(conv(relu(conv(x))) + skip(x)), each convolution followed by batch norm if `norm`.

    The skip is the identity, or a 1 × 1 convolution where width or size change.
    """

    def __init__(self, inputs: int, outputs: int, *, stride: int = 1, norm: bool = False) -> None:
        super().__init__()
        self.first = _convolution(inputs, outputs, 3, stride=stride, norm=norm)
        self.second = _convolution(outputs, outputs, 3, norm=norm)
        changes = stride != 1 or inputs != outputs
        self.skip = _convolution(inputs, outputs, 1, stride=stride, norm=norm) if changes else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        inner = torch.relu(self.first(images))
        return torch.relu(self.second(inner) + self.skip(images))


def _convolution(inputs: int, outputs: int, kernel: int, *, stride: int = 1, norm: bool) -> nn.Module:
    # Batch norm subtracts the mean, so a bias before it would be a parameter without effect.
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=not norm)
    return _chain(conv=convolution, norm=nn.BatchNorm2d(outputs)) if norm else convolution


def _chain(**layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(OrderedDict(layers))


def _residual(stem: dict[str, nn.Module], blocks: list[ResidualBlock], width: int, classes: int) -> nn.Module:
    named: dict[str, nn.Module] = {f"block{number}": block for number, block in enumerate(blocks, 1)}
    head = nn.Linear(width, classes)
    return _chain(**stem, **named, pool=nn.AdaptiveAvgPool2d(1), flat=nn.Flatten(), head=head)


def _stem(channels: int) -> dict[str, nn.Module]:
    stem = nn.Conv2d(channels, 64, 7, stride=2, padding=3)
    return {"stem": stem, "relu": nn.ReLU(), "shrink": nn.MaxPool2d(3, stride=2, padding=1)}


def mlp(channels: int, size: int, classes: int) -> nn.Module:
    hidden = nn.Linear(channels * size * size, 32)
    return _chain(flat=nn.Flatten(), hidden=hidden, relu=nn.ReLU(), head=nn.Linear(32, classes))


def tiny_resnet(channels: int, size: int, classes: int) -> nn.Module:
    return _residual(_stem(channels), [ResidualBlock(64, 64)], 64, classes)


def convnet(channels: int, size: int, classes: int) -> nn.Module:
    blocks: dict[str, nn.Module] = {}
    for number, inputs in enumerate((channels, 128, 128), 1):
        conv = nn.Conv2d(inputs, 128, 3, padding=1)
        # One group per channel: instance norm with a scale and a shift, and no running statistics.
        norm = nn.GroupNorm(128, 128)
        blocks[f"block{number}"] = _chain(conv=conv, norm=norm, relu=nn.ReLU(), pool=nn.AvgPool2d(2))
    return _chain(**blocks, flat=nn.Flatten(), head=nn.Linear(128 * (size // 8) ** 2, classes))


def resnet4(channels: int, size: int, classes: int) -> nn.Module:
    blocks = [
        ResidualBlock(64, 64),
        ResidualBlock(64, 128, stride=2),
        ResidualBlock(128, 128),
        ResidualBlock(128, 128),
    ]
    return _residual(_stem(channels), blocks, 128, classes)


def resnet18(channels: int, size: int, classes: int) -> nn.Module:
    stem = {"stem": _convolution(channels, 64, 3, norm=True), "relu": nn.ReLU()}
    blocks = []
    for inputs, outputs in ((64, 64), (64, 128), (128, 256), (256, 512)):
        stride = 1 if inputs == outputs else 2
        blocks.append(ResidualBlock(inputs, outputs, stride=stride, norm=True))
        blocks.append(ResidualBlock(outputs, outputs, norm=True))
    return _residual(stem, blocks, 512, classes)


MODELS: dict[str, Builder] = {
    "mlp": mlp,
    "tiny-resnet": tiny_resnet,
    "convnet": convnet,
    "resnet4": resnet4,
    "resnet18": resnet18,
}


def build(name: str, channels: int, size: int, classes: int, seed: int) -> nn.Module:
    """A freshly initialised network for square images: the same seed gives the same weights.

    PyTorch's own generator is left as it was, so building a model never changes what is drawn after it.
    """
    if name not in MODELS:
        raise BadSetting(f"model must be one of {', '.join(MODELS)}; got {name!r}")
    if channels < 1 or classes < 1:
        raise BadSetting(f"channels and classes must be at least 1; got {channels} and {classes}")
    if size < SMALLEST:
        raise BadSetting(f"images must measure at least {SMALLEST} × {SMALLEST} pixels; got {size} × {size}")
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed, which would also re-seed every GPU, and those are not put back here.
        torch.default_generator.manual_seed(seed)
        return MODELS[name](channels, size, classes)
