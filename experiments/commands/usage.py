"""Commands and options that are not there: what is said of them, in one sentence with its cure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, Final

import typer
from typer.core import TyperGroup

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.renamed import RENAMED

UsageError: Final[type[Exception]] = typer.BadParameter.__mro__[1]
"""What typer raises where a command line is wrong; it has no public name of its own."""
FEW: Final = 3
"""Commands that an answer names, at most."""


class Commands(TyperGroup):
    """A group of commands that knows the old names of all, and where those that it lacks are."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """
        Raises:
            UsageError: there is no such command.
        """
        name = args[0]
        if name in self.commands:
            return super().resolve_command(ctx, args)
        if ctx.parent is None and name in RENAMED:
            new = RENAMED[name]
            typer.echo(f"note: gpusched {name} is now gpusched {new}; the old name works for one release", err=True)
            return super().resolve_command(ctx, [*new.split(), *args[1:]])
        path = ctx.command_path
        known = {words[-1]: " ".join(words) for words in _paths(ctx.find_root().command)}
        known |= {own: f"{path} {own}" for own in self.commands}
        close = difflib.get_close_matches(name, known, n=1)
        cure = f"did you mean {known[close[0]]}?" if close else f"there are {', '.join(self.commands)}"
        return ctx.fail(f"{path} has no command {name!r}; {cure}")


def explained(error: Any) -> InputError:
    """What is wrong with a command line, and what would be right; ``error``: a :data:`UsageError`."""
    context = error.ctx
    path = "gpusched" if context is None else context.command_path
    if hasattr(error, "possibilities"):
        return InputError(f"{path} has no option {error.option_name}; {_option_cure(context, error.option_name)}")
    given = getattr(error, "param", None)
    about = (getattr(given, "help", None) or "").rstrip(".")
    if hasattr(error, "param_type") and given is not None:
        return InputError(f"{path} lacks {_shown(given)}: {about}")
    if given is not None and about:
        return InputError(f"{_shown(given)}: {error.message.rstrip('.')}; {about}")
    said = error.format_message().rstrip(".")
    if said.startswith(path):
        return InputError(said)
    usage = "" if context is None else f"; {' '.join(context.get_usage().split()).replace('Usage', 'usage')}"
    return InputError(f"{path}: {said[:1].lower()}{said[1:]}{usage}")


def show_help(context: typer.Context) -> None:
    """A group without a command says what there is."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _shown(parameter: Any) -> str:
    """An option by its long name, an argument as the help has it."""
    options = [name for name in parameter.opts if name.startswith("--")]
    return str(options[0] if options else parameter.metavar or parameter.name.upper())


def _option_cure(context: Any, name: str) -> str:
    own = [option for each in context.command.params for option in each.opts if option.startswith("--")]
    close = difflib.get_close_matches(name, own, n=1)
    if close:
        return f"did you mean {close[0]}?"
    having = [
        " ".join(words)
        for words, command in _commands(context.find_root().command)
        if any(name in each.opts for each in command.params)
    ]
    if having:
        return f"that is an option of {', '.join(having[:FEW])}{' and others' * (len(having) > FEW)}"
    return f"{context.command_path} --help lists those that there are"


def _paths(group: Any) -> Iterator[list[str]]:
    return (words for words, _ in _commands(group))


def _commands(group: Any, above: tuple[str, ...] = ("gpusched",)) -> Iterator[tuple[list[str], Any]]:
    """All commands below a group by the words that call them, groups too, those of groups last."""
    for name, command in group.commands.items():
        yield [*above, name], command
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*above, name))
