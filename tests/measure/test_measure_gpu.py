"""``make gpu`` where there is no GPU: the runner with parts that misbehave, and the code of each part on the CPU."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from html import escape
from pathlib import Path

import psutil
import pytest
import torch

from ringzero.measure.gpu import (
    __main__,
    card,
    clocks,
    copies,
    memory,
    offload,
    parts,
    products,
    profiled,
    pytests,
    runner,
    steps,
)
from ringzero.measure.gpu.parts import Part
from ringzero_course.figures import gpu_records
from tests import predictions

ROOT = Path(__file__).resolve().parents[2]


def part(name, limit=60.0):
    return Part(name, "", limit, f"tests.gpu_parts:{name}")


def run(tmp_path, *names, chosen=None, seconds=200.0, limit=60.0, say=lambda line: None):
    path = tmp_path / "gpu" / "record.json"
    asked = names if chosen is None else chosen
    record = {"card": "a card", "date": "2026-01-01"}
    runner.run([part(name, limit) for name in names], asked, record, path, seconds, "cpu", say)
    return json.loads(path.read_text())["parts"]


# ---- the runner


def test_parts_run_in_their_order_and_one_that_breaks_loses_only_itself(tmp_path):
    order = ("fails", "crashes", "leaves", "writes_no_number", "skips", "good")
    found = run(tmp_path, *order)
    assert tuple(found) == order
    assert {name: each["status"] for name, each in found.items()} == {
        "fails": "failed", "crashes": "failed", "leaves": "failed", "writes_no_number": "failed",
        "skips": "skipped", "good": "ok",
    }  # fmt: skip
    assert found["good"]["rows"] == [{"device": "cpu", "number": 1}, {"device": "cpu", "number": 2}]
    assert found["fails"]["rows"] == found["crashes"]["rows"] == [{"number": 1}]  # what they had
    assert found["fails"]["why"] == "RuntimeError: CUDA error: out of memory"
    assert found["crashes"]["why"] == "its process ended by SIGSEGV; its last line: ['about to crash']"
    assert found["leaves"]["why"].startswith("its process ended with status 0")
    assert found["writes_no_number"]["why"].startswith("ValueError: Out of range float values")
    assert found["skips"]["why"] == "nvcc is not here"
    assert all(each["seconds"] >= 0 for each in found.values())


def test_one_that_hangs_is_ended_with_all_that_it_started(tmp_path):
    found = run(tmp_path, "hangs", limit=15.0)["hangs"]
    assert (found["status"], found["why"]) == ("time", "not done within 15 s")
    (row,) = found["rows"]
    assert not psutil.pid_exists(row["number"]) or psutil.Process(row["number"]).status() == psutil.STATUS_ZOMBIE


def test_what_was_left_out_and_what_had_no_time_is_said(tmp_path):
    found = run(tmp_path, "good", "skips", chosen=["good"], seconds=1)
    assert found["skips"] == {"status": "skipped", "why": "left out by --only or --skip", "rows": [], "seconds": 0.0}
    assert found["good"]["why"] == "the 1 s for all parts were over"


def test_the_record_is_written_after_each_part(tmp_path):
    seen = []
    run(tmp_path, "good", "skips", say=lambda line: seen.append((tmp_path / "gpu/record.json").read_text()))
    assert [list(json.loads(text)["parts"]) for text in seen] == [["good"], ["good", "skips"]]
    assert [path.name for path in (tmp_path / "gpu").iterdir()] == ["record.json"]


INTERRUPTED = """
import sys
import time
from pathlib import Path
from ringzero.measure.gpu import runner
from tests.measure.test_measure_gpu import part
record, path = {"card": "a card"}, Path(sys.argv[1])
both = [part("good"), part("hangs")]
runner.run(both, ["good", "hangs"], record, path, 200, "cpu", lambda line: print(line, flush=True))
"""


def test_an_interruption_loses_nothing_that_was_done(tmp_path):
    path = tmp_path / "record.json"
    running = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(path)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with running:
        assert b"good" in running.stdout.readline()
        while not psutil.Process(running.pid).children():  # until the second part runs
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
    found = json.loads(path.read_text())["parts"]
    assert (found["good"]["status"], len(found["good"]["rows"])) == ("ok", 2)
    assert (found["hangs"]["status"], found["hangs"]["why"]) == ("failed", "interrupted")


def test_a_line_that_was_not_finished_is_left_out(tmp_path):
    (tmp_path / "rows").write_text('["row", {"a": 1}]\n["row", {"a"')
    assert runner.read_lines(tmp_path / "rows") == [["row", {"a": 1}]]
    assert runner.read_lines(tmp_path / "nothing") == []


# ---- the command


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_without_a_gpu_it_is_one_sentence(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "ringzero.measure.gpu"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert re.fullmatch(r"make gpu: it needs an NVIDIA GPU, and torch \S+ .*\n", done.stderr)
    assert not done.stdout
    assert not list(tmp_path.iterdir())


def test_a_part_that_is_not_there_is_named(capsys):
    with pytest.raises(SystemExit) as ended:
        __main__.main(["--only", "copies,prodcuts"])
    assert ended.value.code == 2
    assert "no part is called 'prodcuts'; there are tests, copies, products" in capsys.readouterr().err


def test_the_command_runs_what_was_chosen(tmp_path, monkeypatch, capsys):
    found = {"card": "NVIDIA H100 80GB HBM3", "driver": "580.1", "torch": "2.13.0"}
    monkeypatch.setattr(__main__, "read_card", lambda: found)
    monkeypatch.setattr(__main__, "PARTS", (part("good"), part("skips"), part("fails")))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    path = tmp_path / "record.json"
    assert __main__.main(["--skip", "fails", "--to", str(path)]) == 0
    record = json.loads(path.read_text())
    assert record.items() >= found.items()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"])
    assert [each["status"] for each in record["parts"].values()] == ["ok", "skipped", "skipped"]
    assert f"written: {path}" in capsys.readouterr().out
    assert __main__.main(["--only", "fails", "--to", str(path)]) == 1
    assert __main__.main(["--minutes", "0.01", "--to", str(path)]) == 0
    assert json.loads(path.read_text())["parts"]["good"]["why"] == "the 0.6 s for all parts were over"


def test_each_run_has_a_file_of_its_own_where_pages_look():
    from datetime import datetime

    path = __main__.default_path("NVIDIA H100 80GB HBM3", datetime(2026, 1, 2, 3, 4, 5))
    assert path == ROOT / "book/gpu/2026-01-02T030405_nvidia-h100-80gb-hbm3.json"


def test_a_torch_without_cuda_and_a_machine_without_a_gpu_are_told_apart(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", None)
    assert "is built without CUDA" in card.read()["missing"]
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert "finds none here" in card.read()["missing"]


def test_every_part_can_be_found_and_needs_less_than_there_is():
    import importlib

    for each in parts.PARTS:
        module, function = each.rows.split(":")
        assert callable(getattr(importlib.import_module(module), function)), each.name
        assert runner.LEAST < each.limit <= 8 * 60
    assert {*gpu_records.SHOWN} < {each.name for each in parts.PARTS}


def test_each_test_for_a_gpu_is_in_one_of_the_parts():
    """By pytest's ``-k``, where a word stands for whether it is in the test's name."""
    collect = [sys.executable, "-m", "pytest", "tests/gpu", "--collect-only", "-q"]
    plainly = os.environ | {"PYTEST_ADDOPTS": ""}
    done = subprocess.run(collect, cwd=ROOT, env=plainly, capture_output=True, text=True, check=False)
    tests = [line for line in done.stdout.splitlines() if "::" in line]
    assert len(tests) > 20
    for test in tests:
        words = {"two": "two" in test, "labs": "labs" in test}
        assert sum(eval(expression, words) for expression in pytests.CHOSEN.values()) == 1, test


def test_results_are_read_as_pytest_prints_them(tmp_path, monkeypatch):
    (tmp_path / "tests/gpu").mkdir(parents=True)
    (tmp_path / "tests/gpu/test_some.py").write_text(
        "import pytest\n@pytest.mark.parametrize('name', ['zero 1, ring', 'ddp'])\n"
        "def test_one(name): assert name == 'ddp', 'no'\ndef test_other(): pytest.skip('why')\n"
    )
    monkeypatch.setattr(pytests, "ROOT", tmp_path)
    monkeypatch.setitem(pytests.CHOSEN, "all", "test")
    rows = []
    with pytest.raises(RuntimeError, match=r"status 1: FAILED tests/gpu/test_some.py::test_one\[zero 1, ring\]"):
        rows.extend(iter_into(rows, pytests.run("all")))
    assert [(row["test"], row["result"]) for row in rows] == [
        ("test_some.py::test_one[zero 1, ring]", "failed"),
        ("test_some.py::test_one[ddp]", "passed"),
        ("test_some.py::test_other", "skipped"),
    ]


def iter_into(rows, found):
    """Append as they come, so that rows before an error are there."""
    for row in found:
        rows.append(row)
    return []


def test_without_the_repository_the_tests_are_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(pytests, "ROOT", tmp_path)
    with pytest.raises(parts.Skip, match="tests/gpu is not here"):
        next(pytests.run("labs"))


# ---- the parts, on the CPU


@pytest.fixture(scope="module")
def measured():
    """``{part: rows}`` of small sizes, on the CPU."""
    return {
        "copies": list(copies.rows("cpu", (2**12, 2**20), 3)),
        "products": list(products.rows("cpu", ((8, 16, 32), (16, 16, 16)))),
        "clocks": list(clocks.rows("cpu", (8, 16), 3)),
        "offload": list(offload.rows("cpu", 32, 3, 8, 2)),
        "memory": list(memory.rows("cpu", 32, 3)),
        "ddp": list(steps.rows("cpu", {"small": (16, 3, 8)}, 3)),
        "layer_norm": list(profiled.layer_norm("cpu", 16, 32)),
    }


def test_rows_are_plain_data(measured):
    for name, rows in measured.items():
        assert rows, name
        assert json.loads(json.dumps(rows, allow_nan=False)) == rows


def test_every_time_is_positive(measured):
    for rows in measured.values():
        for row in rows:
            assert all(value > 0 for key, value in row.items() if key.endswith("seconds") and value is not None), row


def test_every_copy_is_there(measured):
    kinds = {(row["bytes"], row["way"], row["asynchronous"]) for row in measured["copies"]}
    assert len(kinds) == len(measured["copies"]) == 2 * 2 * 2


def test_bytes_are_those_of_the_formula(measured):
    """In fp32 and in mixed precision 16 bytes a parameter, and 4 for each step count."""
    *states, peak = measured["memory"]
    assert len(states) == 1 + 3 * 2
    for row in states:
        assert row["counted_bytes"] == row["predicted_bytes"] == 16 * 3 * 32 * 32 + 3 * 4, row
    assert peak["counted_bytes"] > 16 * 3 * 32 * 32


def test_the_offloaded_update_is_predicted_from_its_parts(measured):
    fp32, bf16 = measured["offload"]
    assert fp32["copied_bytes"] == 2 * bf16["copied_bytes"] == 4 * 3 * 32 * 32
    for row in (fp32, bf16):
        both = row["copies_seconds"], row["adam_seconds"]
        assert row["predicted_seconds"] == pytest.approx(max(both) + min(both) / 3)


def test_torchs_ddp_is_compared_with_itself(measured):
    rows = {row["wrapping"]: row for row in measured["ddp"]}
    assert {*rows} == {"ours", "torch", "alone"}
    assert rows["torch"]["ratio"] == 1


def test_products_leave_the_precision_as_it_was(measured):
    assert torch.get_float32_matmul_precision() == "highest"
    assert {row["type"] for row in measured["products"]} == {"fp32", "tf32", "bf16", "fp16"}


@pytest.mark.parametrize(
    ("card", "capability", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", (9, 0), {"fp32": None, "tf32": 494.5e12, "bf16": 989e12, "fp16": 989e12}),
        ("Tesla V100-SXM2-32GB", (7, 0), {"fp32": None, "tf32": None, "bf16": None, "fp16": 125e12}),
        ("A card that nobody knows", (9, 0), {"fp32": None, "tf32": None, "bf16": None, "fp16": None}),
    ],
)
def test_a_peak_is_the_cards_or_none(monkeypatch, card, capability, expected):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: card)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert {name: products.peak_flops(name, "cuda") for name in products.TYPES} == expected


def test_the_profile_of_layer_norm_has_its_chain_and_its_table(measured):
    names = [(row["depth"], row["name"]) for row in measured["layer_norm"] if row["what"] == "chain"]
    assert names[:2] == [(0, "aten::layer_norm"), (1, "aten::native_layer_norm")]
    table = {row["name"]: row for row in measured["layer_norm"] if row["what"] == "operator"}
    assert table["aten::native_layer_norm"]["calls"] == profiled.CALLS


def test_the_chain_goes_on_to_the_kernel():
    """A trace as a GPU gives one: CUDA's call has the number of its operator, the kernel that of the call."""

    def event(category, name, at, takes, thread=1, **args):
        return {"cat": category, "name": name, "ts": at, "dur": takes, "tid": thread, "args": args}

    events = [
        event("cpu_op", "aten::layer_norm", 100, 50, **{"External id": 7}),
        event("cpu_op", "aten::native_layer_norm", 105, 40, **{"External id": 8}),
        event("cpu_op", "aten::empty", 106, 2, **{"External id": 9}),
        event("cuda_runtime", "cudaLaunchKernel", 149.9, 6, correlation=31, **{"External id": 8}),  # by another clock
        event("kernel", "vectorized_layer_norm_kernel", 160, 20, 7, correlation=31, **{"External id": 8}),
        event("cuda_runtime", "cudaLaunchKernel", 300, 6, correlation=32, **{"External id": 12}),
        event("cpu_op", "aten::sum", 110, 5, 2, **{"External id": 10}),  # of another thread
        event("cpu_op", "aten::layer_norm", 20, 50, **{"External id": 20}),  # an earlier call
        {"ph": "M", "name": "process_name"},
    ]
    rows = list(profiled.chain(events, "aten::layer_norm"))
    assert [(row["depth"], row["where"], row["name"], row["starts_us"]) for row in rows] == [
        (0, "operator", "aten::layer_norm", 0),
        (1, "operator", "aten::native_layer_norm", 5),
        (2, "CUDA call", "cudaLaunchKernel", 49.9),
        (3, "GPU", "vectorized_layer_norm_kernel", 60),
        (2, "operator", "aten::empty", 6),
    ]
    with pytest.raises(ValueError, match="the trace has no aten::gelu"):
        list(profiled.chain(events, "aten::gelu"))


no_space = pytest.mark.skipif(" " in torch.__file__, reason="torch compiles nothing below a space in a name")


@no_space
@pytest.mark.skipif(None in (shutil.which("c++"), shutil.which("ninja")), reason="needs c++ and ninja")
def test_an_operator_that_was_compiled_here_is_in_the_profile():
    rows = list(profiled.kernel("cpu", 1000))
    chains = [row["name"] for row in rows if row["what"] == "chain" and row["depth"] == 0]
    assert chains == ["course::sgd", "aten::mul_"]
    assert any(
        row["name"] == "course::sgd" and row["calls"] == profiled.CALLS for row in rows if row["what"] == "operator"
    )


@no_space
def test_a_missing_compiler_skips_the_kernel(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    with pytest.raises(parts.Skip, match="no ninja and no c\\+\\+ here"):
        next(profiled.kernel("cpu", 10))


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_the_cuda_kernel_compiles(tmp_path):
    name, text = profiled.source("cuda")
    (tmp_path / name).write_text(text)
    include = Path(torch.__path__[0], "include")
    done = subprocess.run(
        ["nvcc", "-c", name, "-std=c++20", "-DUSE_CUDA", f"-I{include}", "-Xcompiler", "-fPIC", "-o", "sgd.o"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"sgd_kernel" in (tmp_path / "sgd.o").read_bytes()


# ---- on pages


@pytest.fixture
def folder(tmp_path, measured):
    """Records of two runs that never were: the newer one has the copies only, and failed at the rest."""
    for date, failed in (("2026-01-01", []), ("2026-02-02", [name for name in measured if name != "copies"])):
        record = {"card": "NVIDIA H100 80GB HBM3", "driver": "580.1", "torch": "2.13.0", "date": date, "parts": {}}
        for name, rows in measured.items():
            record["parts"][name] = {
                "status": "failed" if name in failed else "ok",
                "why": None,
                "rows": rows,
                "seconds": 1,
            }
        runner.write(record, tmp_path / f"{date}T000000_h100.json")
    return f"{tmp_path}/*.json"


@pytest.mark.parametrize("name", [name for name in gpu_records.SHOWN if name != "kernel"])
def test_the_newest_record_of_a_part_is_shown_with_card_and_date(folder, name):
    shown = gpu_records.on_a_gpu(name, folder)
    date = "2026-02-02" if name == "copies" else "2026-01-01"
    assert f"NVIDIA H100 80GB HBM3, driver 580.1, torch 2.13.0: recorded on {date}." in shown.html
    assert shown.html.count("<tr>") > 2
    assert "nan" not in shown.html


def test_a_prediction_from_a_record_is_explained(folder):
    page = f"<section><section>{gpu_records.on_a_gpu('offload', folder).html}</section></section>"
    assert len(predictions.pairs(page)) == 2
    assert predictions.unexplained(page) == []
    bytes_of_states = predictions.pairs(f"<section>{gpu_records.on_a_gpu('memory', folder).html}</section>")
    assert [pair.ratio for pair in bytes_of_states] == [1.0] * 7


@pytest.mark.parametrize("name", gpu_records.SHOWN)
def test_without_a_record_a_page_says_so(tmp_path, name):
    for empty in (tmp_path, tmp_path / "not there"):
        shown = gpu_records.on_a_gpu(name, f"{empty}/*.json")
        assert (shown.html, shown.alt) == (f"<p>{escape(gpu_records.NONE)}</p>", gpu_records.NONE)


def test_pages_show_parts_that_there_are():
    asked = {}
    for page in sorted((ROOT / "book").glob("*.md")):
        if names := re.findall(r'on_a_gpu\("(\w+)", "gpu/\*\.json"\)', page.read_text()):
            asked[page.name[:2]] = names
    assert {*asked} == {"10", "12", "14", "be"}  # "be": beside_torch
    assert sorted(sum(asked.values(), [])) == sorted(gpu_records.SHOWN)


def test_records_in_the_repository_are_whole():
    for path in (ROOT / "book/gpu").glob("*.json"):
        record = json.loads(path.read_text())
        assert {"card", "driver", "cuda", "torch", "nccl", "date", "parts"} <= {*record}, path
        for name, each in record["parts"].items():
            assert {*each} == {"status", "why", "seconds", "rows"}, (path, name)
            assert each["status"] in ("ok", "failed", "time", "skipped")
            if each["status"] == "ok" and name in gpu_records.SHOWN:
                gpu_records.SHOWN[name](each["rows"], record)
