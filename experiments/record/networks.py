"""The PyTorch networks of recordings, and those that no recording has."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import numpy as np

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.record.scattering import SCATTERING, SCATTERING_NAMED
from gpusched_env.experiments.record.steps import (
    LANGUAGE_NAMED,
    Step,
    answering_step,
    bodies_step,
    language_step,
    operator_step,
    training_step,
)
from gpusched_env.experiments.record.steps import OPERATOR_NAMED as OPERATOR


@dataclass(frozen=True, slots=True)
class NetworkBuilder:
    """How to build a network."""

    packages: tuple[str, ...]
    """Packages that it needs besides torch."""
    build: Callable[[], Step]
    """Makes the network on the GPU."""


def _torch() -> Any:
    return import_module("torch")


def _inference(model: Any, *inputs: Any, **named: Any) -> Step:
    """Half precision; inputs of whole numbers stay so."""
    torch = _torch()
    model = model.eval().cuda().half()

    def step() -> Any:
        with torch.inference_mode():
            return model(*inputs, **named)

    return step


def _images(batch: int, pixels: int) -> Any:
    torch = _torch()
    return torch.randn(batch, 3, pixels, pixels, device="cuda", dtype=torch.half)


def _vision(name: str, batch: int) -> NetworkBuilder:
    """A network of torchvision that classifies or segments images."""

    def build() -> Step:
        models = import_module("torchvision").models
        # One that segments has a part that classifies, which would be downloaded.
        bare = {"weights_backbone": None} if name in models.list_models(module=models.segmentation) else {}
        return _inference(models.get_model(name, weights=None, **bare), _images(batch, 224))

    return NetworkBuilder(("torchvision",), build)


def _waiting(name: str, batch: int, waits: int) -> NetworkBuilder:
    """A network whose host waits for the GPU so many times in mid-network, at even distances of its layers."""

    def build() -> Step:
        torch = _torch()
        model = import_module("torchvision").models.get_model(name, weights=None)
        layers = [layer for layer in model.modules() if not list(layer.children())]
        places = {round((wait + 1) * len(layers) / (waits + 1)) for wait in range(waits)}
        for place in sorted(places):
            layers[place - 1].register_forward_hook(lambda *_: torch.cuda.current_stream().synchronize())
        return _inference(model, _images(batch, 224))

    return NetworkBuilder(("torchvision",), build)


def _timm(name: str, batch: int, pixels: int) -> NetworkBuilder:
    """A classification network of timm."""

    def build() -> Step:
        return _inference(import_module("timm").create_model(name, pretrained=False), _images(batch, pixels))

    return NetworkBuilder(("timm",), build)


def _tokens(vocabulary: int, batch: int, length: int) -> Any:
    return _torch().randint(0, vocabulary, (batch, length), device="cuda")


def _bert(batch: int, length: int) -> NetworkBuilder:
    """BERT-base, all of whose tokens attend to each other."""

    def build() -> Step:
        torch, transformers = _torch(), import_module("transformers")
        config = transformers.BertConfig()
        bert = transformers.BertModel(config)

        class Unmasked(torch.nn.Module):  # type: ignore[misc, name-defined]
            """Avoids the library's look from the host at whether anything is masked, which no graph can capture."""

            def __init__(self) -> None:
                super().__init__()
                self.bert = bert

            def forward(self, tokens: Any) -> Any:
                return self.bert.pooler(self.bert.encoder(self.bert.embeddings(tokens))[0])

        return _inference(Unmasked(), _tokens(config.vocab_size, batch, length))

    return NetworkBuilder(("transformers",), build)


def _gpt2_prefill(batch: int, length: int) -> NetworkBuilder:
    """GPT-2 (124 million weights), which reads a prompt."""

    def build() -> Step:
        transformers = import_module("transformers")
        config = transformers.GPT2Config()
        model = transformers.GPT2LMHeadModel(config)
        return _inference(model, input_ids=_tokens(config.vocab_size, batch, length))

    return NetworkBuilder(("transformers",), build)


def _lstm(batch: int, steps: int) -> NetworkBuilder:
    """A layer of 1024 units as cells, whose kernels are many and small, and one of 1000 classes."""

    def build() -> Step:
        torch = _torch()
        size = 1024

        class Cells(torch.nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.cell = torch.nn.LSTMCell(size, size)
                self.classes = torch.nn.Linear(size, 1000)

            def forward(self, given: Any) -> Any:
                hidden = torch.zeros(batch, size, device=given.device, dtype=given.dtype)
                state = hidden, torch.zeros_like(hidden)
                for step in given:
                    state = self.cell(step, state)
                return self.classes(state[0])

        return _inference(Cells(), torch.randn(steps, batch, size, device="cuda", dtype=torch.half))

    return NetworkBuilder((), build)


def _training(name: str, batch: int) -> NetworkBuilder:
    """A step of stochastic gradient descent of a classification network of torchvision, with bfloat16 autocast."""

    def build() -> Step:
        torch = _torch()
        model = import_module("torchvision").models.get_model(name, weights=None).cuda()
        # Casts of weights that were kept from before a capture would be no part of it.
        autocast = functools.partial(torch.autocast, "cuda", torch.bfloat16, cache_enabled=False)
        return training_step(model, torch.randn(batch, 3, 224, 224, device="cuda"), autocast)

    return NetworkBuilder(("torchvision",), build)


def _single(name: str, batch: int, trains: bool) -> NetworkBuilder:
    """A classification network of torchvision in single precision with TF32: an inference or a training step."""

    def build() -> Step:
        torch = _torch()
        # Of matrices; convolutions have TF32 by default.
        torch.set_float32_matmul_precision("high")
        model = import_module("torchvision").models.get_model(name, weights=None).cuda()
        images = torch.randn(batch, 3, 224, 224, device="cuda")
        return training_step(model, images) if trains else answering_step(model, images)

    return NetworkBuilder(("torchvision",), build)


NETWORKS: Final = {
    "resnet50_infer_b1": _vision("resnet50", 1),
    "mobilenetv3_infer_b1": _vision("mobilenet_v3_large", 1),
    "bert_infer_b1_s128": _bert(1, 128),
    "alexnet_infer_b1": _vision("alexnet", 1),
    "vit_b16_infer_b8": _vision("vit_b_16", 8),
    "lstm_infer_b16_t50": _lstm(16, 50),
    "resnet50_infer_b32": _vision("resnet50", 32),
    "vgg16_infer_b8": _vision("vgg16", 8),
    "bert_infer_b8_s128": _bert(8, 128),
    "gpt2_prefill_b1_s512": _gpt2_prefill(1, 512),
    "nasnetalarge_infer_b1": _timm("nasnetalarge", 1, 331),
    "resnet50_train_b32": _training("resnet50", 32),
    "resnet18_infer_b1": _vision("resnet18", 1),
    "densenet121_infer_b1": _vision("densenet121", 1),
    "swin_t_infer_b1": _vision("swin_t", 1),
    "densenet201_infer_b8": _vision("densenet201", 8),
    "convnext_tiny_infer_b8": _vision("convnext_tiny", 8),
    "efficientnet_v2_s_infer_b16": _vision("efficientnet_v2_s", 16),
    "efficientnet_b0_infer_b1": _vision("efficientnet_b0", 1),
    "squeezenet_infer_b1": _vision("squeezenet1_1", 1),
    "regnet_y_infer_b1": _vision("regnet_y_1_6gf", 1),
    "wide_resnet50_infer_b16": _vision("wide_resnet50_2", 16),
    "resnext50_infer_b16": _vision("resnext50_32x4d", 16),
    "maxvit_infer_b8": _vision("maxvit_t", 8),
}
PROGRAMS: Final = {
    **{
        f"bodies{bodies}_step_b{batch}": NetworkBuilder((), functools.partial(bodies_step, bodies, batch))
        for bodies in (6, 9, 11, 20)
        for batch in (2048, 8192, 32768, 65536, 131072)
    },
    "condconv_b0_infer_b1": _timm("tf_efficientnet_cc_b0_4e", 1, 224),
    **{name: NETWORKS[name] for name in NETWORKS if name.endswith("_infer_b1")},
    **{name: NETWORKS[name] for name in ("bert_infer_b1_s128", "lstm_infer_b16_t50")},
}
"""Networks whose kernels are recorded with the memory that they touch."""
FOREGROUND: Final = (
    "resnet50_infer_b1",
    "bert_infer_b1_s128",
    "alexnet_infer_b1",
    "mobilenetv3_infer_b1",
    "lstm_infer_b16_t50",
    "resnet18_infer_b1",
    "densenet121_infer_b1",
    "swin_t_infer_b1",
    "efficientnet_b0_infer_b1",
    "squeezenet_infer_b1",
    "regnet_y_infer_b1",
)
BACKGROUND: Final = (
    "resnet50_infer_b32",
    "vgg16_infer_b8",
    "bert_infer_b8_s128",
    "gpt2_prefill_b1_s512",
    "nasnetalarge_infer_b1",
    "resnet50_train_b32",
    "vit_b16_infer_b8",
    "densenet201_infer_b8",
    "convnext_tiny_infer_b8",
    "efficientnet_v2_s_infer_b16",
    "wide_resnet50_infer_b16",
    "resnext50_infer_b16",
    "maxvit_infer_b8",
)
MODES: Final = ("streams", "priority")
_NAMED: Final = re.compile(
    r"(?P<model>\w+?)(?P<single>_fp32)?(_waits(?P<waits>[1-9]\d?))?_(?P<task>infer|train)_b(?P<batch>[1-9]\d*)"
)


def network(name: str) -> NetworkBuilder:
    """One of :data:`NETWORKS`, or any network of torchvision that classifies images: ``<its name>_infer_b<batch>`` or
    ``<its name>_train_b<batch>``, with ``_fp32`` behind its name in single precision with TF32; of those that segment
    images, inference alone. ``<its name>_waits<count>_infer_b<batch>`` waits for the GPU in mid-network. Or a step of a
    language model (:data:`~gpusched_env.experiments.record.steps.LANGUAGE_NAMED`), or a loop of one operator
    (:data:`~gpusched_env.experiments.record.steps.OPERATOR_NAMED`), or what gathers and scatters
    (:data:`~gpusched_env.experiments.record.scattering.SCATTERING_NAMED`).

    Raises:
        InputError: it is neither.
    """
    if LANGUAGE_NAMED.fullmatch(name):
        return NetworkBuilder((), functools.partial(language_step, name))
    if loop := OPERATOR.fullmatch(name):
        return NetworkBuilder((), functools.partial(operator_step, loop["operator"]))
    if scattering := SCATTERING_NAMED.fullmatch(name):
        return NetworkBuilder((), SCATTERING[scattering["program"]])
    named = _NAMED.fullmatch(name)
    if name in NETWORKS or named is None or not _in_torchvision(named["model"]):
        return _known(name, NETWORKS)
    model, batch, trains = named["model"], int(named["batch"]), named["task"] == "train"
    if named["waits"]:
        if named["single"] or trains:
            return _known(name, NETWORKS)
        return _waiting(model, batch, int(named["waits"]))
    if named["single"]:
        return _single(model, batch, trains)
    return _training(model, batch) if trains else _vision(model, batch)


def torchvision_networks() -> list[str]:
    """Names of torchvision's networks that classify or segment images.

    Raises:
        ImportError: it is not installed.
    """
    models = import_module("torchvision").models
    return [*models.list_models(module=models), *models.list_models(module=models.segmentation)]


def _in_torchvision(model: str) -> bool:
    try:
        return model in torchvision_networks()
    except ImportError:
        return False


def program(name: str) -> NetworkBuilder:
    """One of :data:`PROGRAMS`.

    Raises:
        InputError: it is not.
    """
    return _known(name, PROGRAMS)


def _known(name: str, known: Mapping[str, NetworkBuilder]) -> NetworkBuilder:
    if name not in known:
        raise InputError(f"no network {name!r}; {did_you_mean(name, known)}")
    return known[name]


def chosen(names: Iterable[str], of: Callable[[str], NetworkBuilder] = network) -> list[str]:
    """Networks by name, each of whose packages is installed.

    Raises:
        InputError: an unknown name, or a package is missing.
    """
    found = {name: of(name) for name in names}
    needed: dict[str, list[str]] = {}
    for name in found:
        for package in ("torch", *found[name].packages):
            needed.setdefault(package, []).append(name)
    for package, users in needed.items():
        try:
            import_module(package)
        except ImportError as error:
            raise InputError(
                f"{', '.join(users)} need{'s' if len(users) == 1 else ''} {package}, which cannot be imported "
                f"({error}): install it, or choose other networks with --networks"
            ) from None
    return list(found)


def pairs(names: Iterable[str]) -> list[tuple[str, str, str]]:
    """Mode, foreground and background of all pairs that the networks make up; of those that are not in
    :data:`NETWORKS`, single images are foregrounds."""
    there = list(dict.fromkeys(names))
    others = [name for name in there if name not in NETWORKS]
    fronts = [*(name for name in FOREGROUND if name in there), *(name for name in others if name.endswith("_b1"))]
    behinds = [*(name for name in BACKGROUND if name in there), *(name for name in others if name not in fronts)]
    return [(mode, front, behind) for front in fronts for behind in behinds for mode in MODES]


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
"""Networks that take images of another size, or have answers besides the classes."""
FOREGROUNDS: Final = 10
BACKGROUNDS: Final = 6
BATCHES: Final = (8, 16, 32)
"""Batches of backgrounds; foregrounds have single images."""


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
