"""``gpusched lab cache``: what was compiled and kept on disk."""

from __future__ import annotations

from typing import Annotated

import typer


def cache_command(
    build: Annotated[bool, typer.Option("--build", help="Build the simulated GPU and environments, and wait.")] = False,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all that was kept.")] = False,
) -> None:
    """List what was compiled: the folder of its sources, units, kilobytes, and whether sources have changed since.

    What is stale is removed when its source is compiled again.
    """
    from gpusched_env.building import build_of
    from gpusched_env.envs.drivers import UNITS
    from gpusched_env.errors import InputError
    from gpusched_env.experiments.lib.kept import clear_kept, kept_table, list_kept
    from gpusched_env.experiments.lib.terminal import output_console

    if build and clear:
        raise InputError("--build and --clear: one at a time")
    if clear:
        removed = clear_kept()
        output_console().print(f"Removed {len(removed)} units, {sum(each.size for each in removed) / 1e6:.1f} MB")
        return
    if build:
        build_of(*UNITS).wait()
    output_console().print(kept_table(list_kept()))
