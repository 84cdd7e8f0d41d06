"""Recorded networks that are drawn, and those that are kept for scenarios of unseen ones.

Whole kinds are kept back: vision transformers, GPT-2, detectors, random wirings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Networks:
    """Names of workloads (:func:`gpusched_env.data.recorded_names`)."""

    services: tuple[str, ...]
    """Asked for by requests."""
    best_effort: tuple[str, ...]
    """Run whenever they can: trainings, and batches of a collection."""


SEEN: Final = Networks(
    services=(
        "alexnet_fp32_infer_b1", "amoebanet_infer_b1", "bert_infer_b1_s128", "bert_infer_b8_s128",
        "bodies11_step_b2048", "densenet201_fp32_infer_b1", "dlrm_infer_b256", "dynamic_routing_infer_b4",
        "lstm_infer_b16_t50", "mobilenetv3_infer_b1", "physics_step_b4096", "resnet101_fp32_infer_b1",
        "resnet50_fp32_infer_b1", "resnet50_infer_b1", "resnet50_infer_b32", "vgg16_fp32_infer_b1", "vgg16_infer_b8",
    ),
    best_effort=("bert_train_b16_s128", "resnet50_infer_b32", "resnet50_train_b32", "vgg16_infer_b8"),
)  # fmt: skip
UNSEEN: Final = Networks(
    services=(
        "condconv_b0_infer_b1", "fcos_resnet50_fpn_infer_b1", "gpt2_decode_b8_s512", "gpt2_prefill_b1_s512",
        "instanas_infer_b1", "randwire_infer_b1", "retinanet_resnet50_fpn_infer_b1", "vgg19_fp32_infer_b1",
        "vit_b16_infer_b8",
    ),
    best_effort=("gpt2_prefill_b1_s512", "retinanet_resnet50_fpn_infer_b1", "vit_b16_infer_b8"),
)  # fmt: skip
ENGINE: Final = "llama_1b"
"""A language model whose engine batches requests; in every distribution that has engines."""
