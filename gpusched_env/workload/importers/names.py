"""Readable kernel names that still tell identities apart."""

from __future__ import annotations

import hashlib
import re

MAX_LENGTH = 160
"""Longest name kept; longer ones end in a digest of the full name."""

_NOISE = (
    (re.compile(r"\(anonymous namespace\)::|<unnamed>::"), ""),
    (re.compile(r"\{lambda\(\)#(\d+)\}"), r"lambda\1"),
    (re.compile(r"\{lambda\((.*?)\)#(\d+)\}"), r"lambda\2(\1)"),
    (re.compile(r"::operator\(\)\(\) const"), ""),
    (re.compile(r"\b(?:at::native|at::cuda|at_cuda_detail|c10|cudnn::engines_precompiled|torch::headeronly)::"), ""),
    (re.compile(r"^(?:void|std::enable_if<.*?>::type) "), ""),
)


def short_name(full: str) -> str:
    """``full`` (a demangled C++ name) without namespaces, lambda noise and parameter list.

    Template arguments stay: they distinguish kernels. The result depends on ``full`` alone and has at
    most :data:`MAX_LENGTH` characters.
    """
    name = full
    for pattern, replacement in _NOISE:
        name = pattern.sub(replacement, name)
    name = _without_parameters(name).strip()
    return name if name and len(name) <= MAX_LENGTH else with_digest(name, full)


def with_digest(name: str, full: str) -> str:
    """``name``, cut if need be, with a digest of ``full`` to keep it distinct."""
    digest = hashlib.sha256(full.encode()).hexdigest()[:6]
    return f"{name[: MAX_LENGTH - 7]}~{digest}"


def _without_parameters(name: str) -> str:
    """Drop the parameter list: everything from the first ``(`` outside template brackets."""
    depth = 0
    for i, character in enumerate(name):
        if character == "<":
            depth += 1
        elif character == ">":
            depth -= 1
        elif character == "(" and depth == 0 and i > 0:
            return name[:i]
    return name
