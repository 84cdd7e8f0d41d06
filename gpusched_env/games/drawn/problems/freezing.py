"""Freeze the splits: ``python -m gpusched_env.games.drawn.problems.freezing``, before anything is trained on them.

What is frozen stays: only splits that are not are drawn.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from gpusched_env.games.drawn.problems import splits
from gpusched_env.games.drawn.problems.splits import FROZEN, HASHES, JUDGED, FrozenScenario, drawn, frozen, hash_of


def freeze() -> None:
    """Write the hashes of all scenarios of all splits beside the module, split after split."""
    file = Path(splits.__file__).with_name(HASHES)
    kept = dict(frozen())
    for split in JUDGED:
        if split in kept:
            continue
        found = [drawn(f"{split}-{number}") for number in range(FROZEN)]
        kept[split] = [FrozenScenario(hash_of(each), each.floor) for each in found]
        lines = (f'"{name}": {msgspec.json.encode(rows).decode()}' for name, rows in kept.items())
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        print(split, flush=True)


if __name__ == "__main__":
    freeze()
