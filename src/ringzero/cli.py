"""The ``ringzero`` command. Each subcommand imports what it needs when it runs, so ``--help`` is immediate."""

import importlib
from typing import Any

import click


class LazyGroup(click.Group):
    """A group whose subcommands are ``{name: "module:attribute"}``, imported when asked for."""

    def __init__(self, *args: Any, lazy: dict[str, str] | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.lazy = lazy or {}

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted([*super().list_commands(context), *self.lazy])

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.lazy:
            return super().get_command(context, name)
        module, attribute = self.lazy[name].split(":")
        return getattr(importlib.import_module(module), attribute)


@click.group(
    cls=LazyGroup,
    lazy={
        "collect": "ringzero.grading.instructor:collect",
        "doctor": "ringzero.doctor:doctor",
        "grade": "ringzero.grading.instructor:grade",
        "grades": "ringzero.grading.instructor:grades",
        "autograder": "ringzero.grading.instructor:autograder",
        "gradescope": "ringzero.grading.instructor:gradescope",
        "mutants": "ringzero.grading.mutants:mutants",
        "measure": "ringzero.commands.measure:measure",
        "plan": "ringzero.commands.plan:plan",
        "release": "ringzero.grading.instructor:release",
        "seal": "ringzero.grading.instructor:seal",
        "similar": "ringzero.grading.instructor:similar",
        "timeline": "ringzero.profiles.command:command",
    },
)
@click.version_option(package_name="ringzero")
def main() -> None:
    """Ring AllReduce and ZeRO, and the course built on them."""


@main.group(
    cls=LazyGroup,
    lazy={
        "cluster": "ringzero.bench.cluster:command",
        "ddp": "ringzero.bench.ddp:command",
        "collectives": "ringzero.bench.collectives:command",
        "diagnosis": "ringzero.bench.diagnosis:command",
        "grading": "ringzero.bench.grading:command",
        "hostile": "ringzero.bench.hostile:command",
        "launch": "ringzero.bench.launch:command",
        "overlap": "ringzero.bench.overlap:command",
        "prediction": "ringzero.bench.prediction:command",
        "muon": "ringzero.bench.muon:command",
        "offload": "ringzero.bench.offload:command",
        "pricing": "ringzero.bench.pricing:command",
        "strict": "ringzero.bench.strict:command",
        "trace": "ringzero.bench.trace:command",
        "unsynced": "ringzero.bench.unsynced:command",
        "zero": "ringzero.bench.zero:command",
        "zeropp": "ringzero.bench.zeropp:command",
    },
)
def bench() -> None:
    """Measure ours beside a peer, alternately, in one run."""


if __name__ == "__main__":
    main()
