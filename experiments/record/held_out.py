"""Networks that no recording has, drawn by a seed: what a model of the GPU can be judged by once it is made.

A set counts as held out only as long as nobody has looked at what the simulator makes of it. So the draw is a command
(``gpusched record --drawn SEED``), the seed is in the file, and the first validation of it is the one that counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from gpusched_env.errors import InputError

SEEN: Final = frozenset(
    (
        "alexnet", "convnext_base", "convnext_large", "convnext_small", "convnext_tiny", "deeplabv3_mobilenet_v3_large",
        "deeplabv3_resnet101", "deeplabv3_resnet50", "densenet121", "densenet161", "densenet169", "densenet201",
        "efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3", "efficientnet_b4",
        "efficientnet_b5", "efficientnet_b6", "efficientnet_b7", "efficientnet_v2_l", "efficientnet_v2_m",
        "efficientnet_v2_s", "fcn_resnet101", "fcn_resnet50", "lraspp_mobilenet_v3_large", "maxvit_t", "mnasnet0_75",
        "mnasnet1_0", "mnasnet1_3", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "regnet_x_16gf",
        "regnet_x_1_6gf", "regnet_x_3_2gf", "regnet_x_400mf", "regnet_x_800mf", "regnet_x_8gf", "regnet_y_128gf",
        "regnet_y_16gf", "regnet_y_1_6gf", "regnet_y_32gf", "regnet_y_3_2gf", "regnet_y_400mf", "regnet_y_800mf",
        "regnet_y_8gf", "resnet101", "resnet152", "resnet18", "resnet34", "resnet50", "resnext101_32x8d",
        "resnext101_64x4d", "resnext50_32x4d", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "shufflenet_v2_x1_5",
        "shufflenet_v2_x2_0", "squeezenet1_0", "squeezenet1_1", "swin_b", "swin_s", "swin_t", "swin_v2_b", "swin_v2_s",
        "swin_v2_t", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn", "vit_b_16",
        "vit_b_32", "vit_h_14", "vit_l_16", "vit_l_32", "wide_resnet101_2", "wide_resnet50_2",
    )
)  # fmt: skip
"""Networks of torchvision that are in an earlier recording."""
LEFT_OUT: Final = frozenset(("googlenet", "inception_v3"))
"""That take images of another size, or have answers besides the classes."""
FOREGROUNDS: Final = 10
BACKGROUNDS: Final = 6
BATCHES: Final = (8, 16, 32)
"""Of backgrounds; foregrounds have single images."""


def draw(seed: int, models: Iterable[str]) -> list[str]:
    """Names for :func:`~gpusched_env.experiments.record.networks.network`, no network twice.

    Args:
        seed: of the draw.
        models: networks of torchvision, in any order.

    Raises:
        InputError: too few of them are in no recording.
    """
    rng = np.random.default_rng(seed)
    fresh = sorted(set(models) - SEEN - LEFT_OUT)
    if len(fresh) < FOREGROUNDS + BACKGROUNDS:
        raise InputError(
            f"--drawn needs {FOREGROUNDS + BACKGROUNDS} networks of torchvision that are in no shipped recording, and "
            f"{len(fresh)} are left ({', '.join(fresh) or 'none'}): name networks with --networks"
        )
    found = [str(name) for name in rng.permutation(fresh)[: FOREGROUNDS + BACKGROUNDS]]
    batches = [1] * FOREGROUNDS + [int(batch) for batch in rng.choice(BATCHES, BACKGROUNDS)]
    return [f"{name}_infer_b{batch}" for name, batch in zip(found, batches, strict=False)]
