"""The ``ringzero`` command. Each subcommand imports what it needs when it runs, so ``--help`` is immediate.

``pip install ringzero`` brings what the library needs; ``ringzero-course`` adds the course's commands. A room
that needs more has it from an extra. Where a package is missing, the command says what brings it.
"""

import importlib
import traceback
from typing import Any

import click

EXTRAS = {  # {room: extra}
    "authoring": "grading", "bench": "bench", "connect": "grading", "grading": "grading",
    "lab": "labs", "ranks": "cluster",
}  # fmt: skip


PACKAGES = {"ringzero": "ringzero", "ringzero_course": "ringzero-course"}  # {package: its name for pip}


def missing(error: ModuleNotFoundError) -> str:
    """The sentence for a package that is not installed: the room whose import failed says which extra brings it.

    Raises the ``error`` again if it is about a module of ringzero itself.
    """
    package = (error.name or "").split(".")[0]
    if error.name == "ringzero_course":
        return 'this is part of the course, which is not installed: pip install "ringzero-course"'
    if package in ("", "ringzero", "ringzero_course"):
        raise error
    modules = [frame.f_globals.get("__name__", "").split(".") for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = [(names[0], EXTRAS.get(names[1])) for names in modules if names[0] in PACKAGES and len(names) > 1]
    brings = next((f"{PACKAGES[top]}[{extra}]" for top, extra in reversed(ours) if extra), "ringzero")
    return f'this needs {package}, which is not installed: pip install "{brings}"'


class LazyGroup(click.Group):
    """A group whose subcommands are ``{name: "module:attribute"}``, imported when asked for.

    One whose packages are not all installed is listed with what it needs. To call it is an error that says so.
    """

    def __init__(self, *args: Any, lazy: dict[str, str] | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.lazy = lazy or {}

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted([*super().list_commands(context), *self.lazy])

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.lazy:
            return super().get_command(context, name)
        module, attribute = self.lazy[name].split(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            return _left_out(name, missing(error))

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except ModuleNotFoundError as error:
            raise click.ClickException(missing(error)) from None


def _left_out(name: str, why: str) -> click.Command:
    """In place of a command that cannot be imported: takes any arguments, and says ``why``."""

    def fail() -> None:
        raise click.ClickException(why)

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    extra = why.rpartition("pip install ")[2]
    return click.Command(name, settings, fail, help=f"Not here: {why}", short_help=f"(needs {extra})")


@click.group(
    cls=LazyGroup,
    lazy={
        "collect": "ringzero_course.connect.commands:collect",
        "doctor": "ringzero.doctor:doctor",
        "explain": "ringzero.dumps.command:command",
        "grade": "ringzero_course.grading.instructor:grade",
        "grades": "ringzero_course.grading.instructor:grades",
        "autograder": "ringzero_course.connect.commands:autograder",
        "gradescope": "ringzero_course.connect.commands:gradescope",
        "mutants": "ringzero_course.authoring.mutants:mutants",
        "measure": "ringzero.commands.measure:measure",
        "plan": "ringzero.commands.plan:plan",
        "quiz": "ringzero_course.connect.commands:quiz",
        "release": "ringzero_course.grading.instructor:release",
        "run": "ringzero.commands.run:run",
        "same": "ringzero.commands.same:same",
        "seal": "ringzero_course.grading.instructor:seal",
        "similar": "ringzero_course.connect.commands:similar",
        "timeline": "ringzero.profiles.command:command",
    },
)
@click.version_option(package_name="ringzero")
def main() -> None:
    """Ring AllReduce and ZeRO, and the course built on them."""


BENCHES = (
    *("cluster", "collectives", "ddp", "grading", "launch", "muon", "offload", "overlap", "prediction", "pricing"),
    *("run", "strict", "trace", "unsynced", "zero", "zeropp"),
)


@main.group(cls=LazyGroup, lazy={name: f"ringzero_course.bench.{name}:command" for name in BENCHES})
def bench() -> None:
    """Measure ours beside a peer, alternately, in one run."""


if __name__ == "__main__":
    main()
