"""The benchmark runs, checks its own results and prints nccl-tests' columns. Its times are reported, never asserted."""

import json
import os
import re

import pytest
from click import ClickException
from click.testing import CliRunner

from ringzero.cli import main
from ringzero.collectives import ALGORITHMS
from ringzero.collectives.auto import chosen
from ringzero.costs.page import alpha_beta
from ringzero.measure.turns import IN_PLACE, OUT_OF_PLACE
from ringzero.network import coefficients
from ringzero_course.bench import collectives, runner, strict, trace
from ringzero_course.bench.collectives import Line, Timing

ROW = {"name", "metric", "ours", "peer", "peer_name", "ratio", "unit"}


@pytest.fixture(autouse=True)
def few_iterations(monkeypatch):
    def measure(*arguments):
        from ringzero.measure import collective

        collective.WARM_UP, collective.ITERATIONS = 1, 2
        return collective.measure(*arguments)

    monkeypatch.setattr(collectives, "measure", measure)


def test_all_collectives_in_rows_and_columns(tmp_path):
    file = tmp_path / "rows.json"
    options = ["--world-sizes", "3", "--sizes", "4K,12000,60000", "--json", str(file)]
    done = CliRunner().invoke(main, ["bench", "collectives", *options])
    assert done.exit_code == 0, done.output
    for column in ("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "Avg bus bandwidth"):
        assert column in done.output
    rows = json.loads(file.read_text())
    assert all(set(row) == ROW for row in rows)
    for collective in ALGORITHMS:
        assert f"# {collective}, 3 ranks" in done.output
        mine = [row for row in rows if re.match(f"{collective}[ ,]", row["name"])]
        beside = [row for row in mine if row["metric"] in ("time", "busbw")]
        assert {row["metric"] for row in mine} >= {"CPU", f"{cores()} cores busy"}
        assert {row["peer_name"] for row in beside} == {"gloo", "gloo, calmed too"}
        assert len(beside) == (2 if collective == "barrier" else 3 * 2)
        for row in beside:
            better = row["peer"] / row["ours"] if row["unit"] == "us" else row["ours"] / row["peer"]
            assert row["ratio"] == pytest.approx(better)
    errors = [row for row in rows if row["metric"] == "prediction error"]
    assert len(errors) == len(ALGORITHMS) - 1 + 1  # the size in the middle of each but barrier; the median
    assert errors[-1]["name"] == "median of all"


def test_several_algorithms_and_the_collectives_that_have_them():
    algorithms = ("bruck", "recursive_doubling", "flat")
    found = [line for name in ("all_gather", "barrier") for line in collectives.lines(name, 3, (4096,), algorithms)]
    ours = {(line.collective, line.algorithm) for line in found if line.algorithm}
    assert ours == {("all_gather", "bruck"), ("all_gather", "flat"), ("barrier", "flat")}  # 3 is no power of two
    assert all(timing.wrong == 0 for line in found for timing in line.forms.values())


def test_every_collective_is_checked(monkeypatch):
    """The #wrong column is a measurement: results that lack what a rank brought show in it, in place and out of it."""

    def measure_broken(*arguments):
        import ringzero
        from ringzero.measure import collective

        collective.WARM_UP, collective.ITERATIONS = 1, 1
        for name in ringzero._COLLECTIVES:
            setattr(ringzero, name, lambda tensor, *others, **options: tensor)
        return collective.measure(*arguments)

    monkeypatch.setattr(collectives, "measure", measure_broken)
    found = [line for name in ALGORITHMS if name != "barrier" for line in collectives.lines(name, 2, (4096,))]
    for line in found:
        for form, timing in line.forms.items():
            assert (timing.wrong > 400) == (line.algorithm is not None), (line.collective, form)


def line(size, seconds, collective="all_reduce", algorithm="ring", world_size=4):
    forms = {OUT_OF_PLACE: Timing(2 * seconds, 2.0, 0), IN_PLACE: Timing(seconds, 2.0, 0)}
    return Line(collective, world_size, size, "auto", algorithm, forms)


def test_times_that_follow_the_model_are_predicted():
    """Also where the algorithm or its pieces change with the size: alpha and beta are the machine's."""
    _, pieces = chosen("all_reduce", "double_binary_tree", 4, 2**20)

    def of(name, **options):
        return coefficients(ALGORITHMS["all_reduce"][name](4, **options))

    costs = {
        2**14: ("recursive_doubling", of("recursive_doubling")),
        2**18: ("rabenseifner", of("rabenseifner")),
        2**20: ("double_binary_tree", of("double_binary_tree", **pieces)),
        2**24: ("ring", of("ring")),
        2**26: ("torus_2d", of("torus_2d")),
    }
    series = [
        line(size, alpha_beta.seconds(cost, size, 20e-6, 1e-9), algorithm=name) for size, (name, cost) in costs.items()
    ]
    predicted = collectives._predicted(series)
    assert [each.fitted for each in predicted] == [True, False, True, False, True]
    assert max(each.error for each in predicted) < 1e-9
    off = collectives._predicted([*series[:3], line(2**24, 2 * series[3].timing.seconds), series[4]])
    assert off[3].error == pytest.approx(0.5)


def test_busbw_as_nccl_tests_has_it():
    """33554432 B all-reduced in 2943.25 us: the line of nccl-tests' README, two ranks, both 11.40 GB/s."""
    algbw, busbw = line(33554432, 2943.25e-6, world_size=2).bandwidths(Timing(2943.25e-6, 2.0, 0))
    assert (round(algbw / 1e9, 2), round(busbw / 1e9, 2)) == (11.40, 11.40)


def cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def test_the_cpus_seconds_stand_beside_the_peers():
    """Those of all ranks, and which part that is of the time of all cores."""
    pair = line(2**20, 4.0 / cores()), line(2**20, 8.0 / cores())
    rows = [(row["metric"], row["ours"], row["peer"]) for row in collectives._cpu_beside(*pair)]
    assert rows == [("CPU", 2e3, 2e3), (f"{cores()} cores busy", pytest.approx(50), pytest.approx(25))]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sizes", "64Q"], "'64Q' is not a list of sizes such as 64K,1M,64M"),
        (["--sizes", "6"], "a size is a multiple of 4 bytes"),
        (["--world-sizes", "two"], "'two' is not a list of world sizes such as 2,4"),
        (["--world-sizes", "0"], "a world size is at least 1"),
        (["--collectives", "all_sum"], "'all_sum' is none of all_reduce, reduce_scatter"),
        (["--algorithms", "tree"], "'tree' is none of auto, "),
        (["--device", "cuda", "--world-sizes", "99"], "needs a GPU for each of 99 ranks and this machine has"),
        (["--backend", "gloo", "--device", "cuda"], "--backend gloo takes no tensors on cuda; cuda has nccl"),
    ],
)
def test_bad_options_are_named(options, message):
    done = CliRunner().invoke(main, ["bench", "collectives", *options])
    assert done.exit_code != 0
    assert re.search(message, done.output), done.output


def test_strict_beside_gloo(monkeypatch, tmp_path):
    programs = {name: program for name, program in strict.PROGRAMS.items() if name != "all all-reduces"}
    monkeypatch.setattr(strict, "PROGRAMS", programs)
    file = tmp_path / "rows.json"
    done = CliRunner().invoke(main, ["bench", "strict", "--iterations", "1", "--json", str(file)])
    assert done.exit_code == 0, done.output
    assert re.search(r"a ring by hand +time +\S+ ms +vs +\S+ gloo: \d+\.\d\d", done.output)
    rows = json.loads(file.read_text())
    assert [row["name"] for row in rows] == [*programs]
    assert all(row["ratio"] == pytest.approx(row["peer"] / row["ours"]) for row in rows)


def test_rows_that_came_are_written_when_the_benchmark_breaks_off(tmp_path, capsys):
    def breaks_off(error):
        yield runner.row("one", "time", 2.0, 3.0, "peer", "s")
        yield runner.row("alone", "errors", 1, None, None, "of 3")
        yield "a line that is no row"
        raise error

    for error, raised in ((KeyboardInterrupt(), KeyboardInterrupt), (ValueError("no such model"), ClickException)):
        file = tmp_path / f"{raised.__name__}.json"
        with pytest.raises(raised):
            runner.show(breaks_off(error), str(file))
        assert [row["ratio"] for row in json.loads(file.read_text())] == [1.5, None]
        assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == [
            "one time 2 s vs 3 peer: 1.50", "alone errors 1 of 3", "a line that is no row",
        ]  # fmt: skip


def test_recording_beside_not_recording(monkeypatch):
    monkeypatch.setattr(trace, "WORLD_SIZES", (2,))
    monkeypatch.setattr(trace, "ITERATIONS", 1)
    gloo, ring = trace.rows()
    assert (gloo["name"], gloo["peer_name"]) == ("gloo all-reduce of 16 MiB, 2 ranks", "not recorded")
    assert ring["name"] == "ring all-reduce of 16 MiB, 2 ranks"
    assert min(gloo["ours"], gloo["peer"], ring["ours"], ring["peer"]) > 0


def test_ddp_beside_torchs_and_no_communication(tmp_path):
    file = tmp_path / "rows.json"
    options = ["--ranks", "2", "--rates", "none", "--models", "mlp", "--steps", "2", "--json", str(file)]
    done = CliRunner().invoke(main, ["bench", "ddp", *options])
    assert done.exit_code == 0, done.output
    rows = json.loads(file.read_text())
    assert all(set(row) == ROW for row in rows)
    metrics = {row["metric"]: row for row in rows}
    assert {metrics[m]["peer_name"] for m in ("step time", "exposed communication", "peak memory")} == {"torch DDP"}
    model_states = 4 * 4 * 12 * (512 * 512 + 512) / 2**20  # parameters, gradients and AdamW's two
    for peak in (metrics["peak memory"]["ours"], metrics["peak memory"]["peer"]):
        assert model_states < peak < 4 * model_states


def test_ddp_names_a_model_it_does_not_have():
    done = CliRunner().invoke(main, ["bench", "ddp", "--ranks", "1", "--rates", "none", "--models", "cnn"])
    assert done.exit_code == 2
    assert "'cnn' is none of mlp, transformer" in done.output


def test_zero_holds_and_sends_what_the_formulas_say(tmp_path):
    file = tmp_path / "rows.json"
    options = ["--ranks", "2", "--rates", "none", "--models", "small", "--steps", "1", "--json", str(file)]
    done = CliRunner().invoke(main, ["bench", "zero", *options])
    assert done.exit_code == 0, done.output
    rows = json.loads(file.read_text())
    assert all(set(row) == ROW for row in rows)
    formulas = [row for row in rows if row["peer_name"] == "formula"]
    assert len(formulas) == 4 * 4
    for row in formulas:
        assert round(row["ours"] * 2**20) == round(row["peer"] * 2**20), row
    peers = {row["peer_name"] for row in rows if row["metric"] == "step time"}
    assert peers == {"torch DDP", "ZeroRedundancyOptimizer", "FSDP2", "FSDP2, kept after forward"}
