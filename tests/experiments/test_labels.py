"""Labels of schedulers: short, and never the same for two."""

from __future__ import annotations

from gpusched_env.experiments.lib.trained import labels


def test_paths_are_as_short_as_tells_them_apart() -> None:
    found = labels(
        [
            "learned",
            "learned:results/learned/best.npz",
            "learned:runs/a/ppo/best.npz",
            "learned:runs/b/ppo",
            "learned:policies/burst.npz",
            "learned:old.zip(trust=true)",
            "here/own.py:Greedy(depth=3)",
            "gpusched_env.baselines.fifo:Fifo",
            "mps(share=50)",
        ]
    )
    assert list(found.values()) == [
        "learned",
        "learned:results/learned",
        "learned:a/ppo",
        "learned:b/ppo",
        "learned:burst.npz",
        "learned:old.zip",
        "own.py:Greedy(depth=3)",
        "gpusched_env.baselines.fifo:Fifo",
        "mps(share=50)",
    ]


def test_no_label_says_learned_twice() -> None:
    assert labels(["learned:learned"]) == {"learned:learned": "learned:./learned"}
    assert labels(["learned:/a/learned/best.npz", "learned:b/learned"]) == {
        "learned:/a/learned/best.npz": "learned:a/learned",
        "learned:b/learned": "learned:b/learned",
    }


def test_what_no_part_of_the_path_tells_apart_keeps_its_name() -> None:
    alike = ["learned:a/best.npz", "learned:a", "learned:a/best.zip"]
    assert len(set(labels(alike).values())) == 3


def test_who_is_told_the_truth_is_marked() -> None:
    assert labels(["x/own.py:Oracle", "fifo"], {"x/own.py:Oracle"}) == {
        "x/own.py:Oracle": "own.py:Oracle*",
        "fifo": "fifo",
    }
