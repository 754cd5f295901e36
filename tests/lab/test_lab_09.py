"""Lab 09: its answers are what the broken programs' reports say."""

import ast
import pickle
import re
import time
from fractions import Fraction

import pytest
import torch
import torch.distributed as dist

pytest.importorskip("nbgrader")

from ringzero import launch
from ringzero.dumps import explain
from ringzero_course.grading import build_labs
from ringzero_course.lab import claims
from ringzero_course.lab.subjects import hangs, recorded
from tests.live_notebook import text_of

LAB = "09_debug_a_hang"
TESTS = [f"test_{name}" for name in ("report", "ring_all_reduce", "train", "train_with_hooks", "sum_pieces")]


def answer(reference, name):
    """What the reference's ``name()`` returns."""
    return ast.literal_eval(text_of(reference.run(name, f"{reference.cells[name].source}\n{name}()")))


def line(reference, name, number):
    """Line ``number`` of the cell of the broken program ``name``."""
    return reference.cells[name].source.splitlines()[number - 1].strip()


def shown_after(reference, name):
    """What the cells that run the broken program ``name`` show, up to its diagnosis."""
    cells = list(reference.cells.values())
    start = next(i for i, cell in enumerate(cells) if cell.id == name) + 1
    stop = next(i for i, cell in enumerate(cells) if i > start and cell.id.startswith("why_"))
    return "\n".join(text_of(cell) for cell in cells[start:stop])


def test_broken_programs_cannot_be_edited_away(reference):
    """nbgrader puts read-only cells back before it grades, and the answers' line numbers count on their text."""
    locked = {cell.id for cell in reference.notebook.cells if cell.metadata.get("nbgrader", {}).get("locked")}
    programs = {f"broken_{name}" for name in ("report", "ring", "train", "hooks", "sums")}
    others = {f"test_{name}" for name in ("first_missing", "culprit", "what_the_dumps_say")}
    assert locked == {"data", "causes", "faults", *programs, *TESTS, *others}


def test_the_hang_at_the_end(reference):
    said, shown = answer(reference, "why_report_hangs"), shown_after(reference, "broken_report")
    (waiting, operation) = re.search(r"never entered all_reduce #(\d+); rank (\d+) waits there", shown).groups()[::-1]
    assert (said["waiting"], said["operation"]) == ([int(waiting)], int(operation))
    assert f"line {said['line']} in broken_report" in shown
    assert "mean_over_ranks(" in line(reference, "broken_report", said["line"])


def test_the_ring_for_two(reference):
    said, shown = answer(reference, "why_ring_hangs"), shown_after(reference, "broken_ring")
    assert "rank 1 → [" in shown.split("stuck for good")[0]  # two ranks: it ends
    first, second = said["cycle"]
    assert f"a cycle: rank {first} waits to receive from rank {second}" in shown
    assert f"rank {second} waits to receive from rank {first}" in shown
    left = line(reference, "broken_ring", said["line"]).removeprefix("left = ")
    assert said["sources"] == [eval(left, {"rank": rank, "n": 4}) for rank in range(4)]


def test_the_learning_rate(reference):
    said, shown = answer(reference, "why_training_diverges"), shown_after(reference, "broken_train")
    losses = [float(four) for four in re.findall(r"^ +\d+ +[\d.]+ +([\d.]+)$", shown, re.MULTILINE)]
    assert len(losses) == 20
    assert said["worse"] == next(step for step, loss in enumerate(losses) if loss > losses[0])
    assert losses[said["worse"]] > 1.05 * losses[0] > 1.3 * losses[said["worse"] - 1]  # no matter of rounding
    one, four = (ast.literal_eval(text) for text in re.findall(r": +(\[.*\])", shown))
    assert [b / a for a, b in zip(one, four, strict=True)] == pytest.approx([said["times"]] * 4, rel=1e-4)
    assert "same w on all ranks: True" in shown


def test_the_four_models(reference):
    said, shown = answer(reference, "why_models_differ"), shown_after(reference, "broken_hooks")
    of_three_steps = ast.literal_eval(re.search(r"rank 0 summed (\[.*\])", shown)[1])
    assert said["bytes_a_step"] == sum(size for _, size in of_three_steps) / 3
    gaps = [ast.literal_eval(text) for text in re.findall(r"differ from rank 0 by (\[.*\])", shown)]
    assert [any(float(gap) for gap in step) for step in gaps] == [False, True, True, True]
    program = reference.cells["broken_hooks"].source.replace("gradient /= n", "print(type(gradient).__name__)")
    given = text_of(reference.run("broken_hooks", f"{program}\nexamine(broken_hooks, 5, 16, 5, 0.1, 1)"))
    reference.run("broken_hooks")
    assert f"rank 3 │ {said['given']}\n" in given


def test_the_largest_first(reference):
    said, shown = answer(reference, "why_sums_fail"), shown_after(reference, "broken_sums")
    call = f"all_reduce #{said['collective']}"
    assert f"the ranks disagree on collective #{said['collective']}: ranks 0, 2, 3 called {call} on 8 bytes" in shown
    assert f"rank {said['odd']} called {call} on {said['bytes']} bytes" in shown
    assert line(reference, "broken_sums", said["line"]).startswith("largest_first = sorted(")
    without_report = [ast.literal_eval(text) for text in re.findall(r"(?:→|are) (\[.*\])", shown)]
    assert len(without_report) == 5
    assert all(ends != without_report[-1] for ends in without_report[:4])


def test_causes_are_in_the_list(reference):
    causes = ast.literal_eval(reference.cells["causes"].source.removeprefix("CAUSES = "))
    assert len(causes) == 13
    for name in ("report_hangs", "ring_hangs", "training_diverges", "models_differ", "sums_fail"):
        assert answer(reference, f"why_{name}")["cause"] in causes


def test_the_cause_is_judged_only_when_handed_in():
    """Nothing that students have says which one is right."""
    released = build_labs.release_notebook(LAB)
    for cell in released.cells:
        if cell.id in TESTS:
            assert "answer.meets(hangs.why(" in cell.source
            assert "claims.entry(" not in cell.source
        if cell.id == "test_what_the_dumps_say":
            assert "hangs.why(" in cell.source
            assert not re.search(r"claims\.entry\(|something else|never came", cell.source)
    assert not [entries for entries in hangs.ANSWERS.values() if "cause" in entries]


def test_to_try_an_answer_takes_a_while():
    start = time.thread_time()
    seals = {claims.seal("line", number) for number in range(3)}
    assert time.thread_time() - start > 0.03
    assert len(seals) == 3


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("ring_all_reduce", {"cause": "wrong peer", "cycle": {1, 0}, "sources": (1, 0, 1, 2), "line": 5.0}),
        ("train", {"cause": "sum for mean", "worse": 11, "times": 4.0000003}),
        ("train", {"cause": "sum for mean", "worse": 11, "times": Fraction(4)}),
        ("report", {"cause": "not all enter", "operation": 7, "waiting": 0, "line": 13}),
    ],
)
def test_equal_answers_in_other_forms(reference, name, answer):
    why = {"ring_all_reduce": "why_ring_hangs", "train": "why_training_diverges", "report": "why_report_hangs"}[name]
    with reference.changed({why: f"def {why}():\n    from fractions import Fraction\n    return {answer!r}"}):
        shown = text_of(reference.run(f"test_{name}"))
    assert "FAIL" not in shown


def test_a_blocking_call_waits_from_its_beginning(reference):
    """Its bar in the first timeline is solid."""
    cell = reference.cell_with("def three_rounds(")
    waits = "[op.wait == op.start for op in examine(three_rounds).trace]"
    shown = text_of(reference.run(cell.id, cell.source.replace("timeline(examine(three_rounds).trace)", waits)))
    reference.run(cell.id)
    assert ast.literal_eval(shown) == [True] * 12


def test_the_answers_about_dumps_are_what_the_jobs_were_made_with(reference):
    said, faults = answer(reference, "what_the_dumps_say"), ast.literal_eval(reference.cells["faults"].source[9:])
    jobs = {name: make(seed) for name, (make, seed) in recorded.JOBS.items()}
    assert {name: said[name] for name in jobs} == {name: job.ranks for name, job in jobs.items()}
    assert {name: said[f"{name}_fault"] for name in jobs} == {name: job.fault for name, job in jobs.items()}
    assert {job.fault for job in jobs.values()} < faults.keys()
    assert said["last"] == jobs["c"].number


def test_where_the_tool_leaves_it_open():
    """The ranks that it names first are those to blame in the first folder and in the third, and not in the others."""
    found = {name: explain([recorded.folder(name)]) for name in "abcd"}
    blamed = {name: make(seed).ranks for name, (make, seed) in recorded.JOBS.items()}
    assert {name for name in found if found[name].ranks == blamed[name]} == {"a", "c"}
    assert set(blamed["b"]) < set(found["b"].ranks)
    assert "to which all ranks of the group came" in found["d"].sentence
    assert f"{recorded.folder('c')}/nccl_trace_rank_{blamed['c'][0]} cannot be read: it is cut short" in str(found["c"])
    assert sorted(recorded.read(recorded.folder("c"))) == [rank for rank in range(8) if rank not in blamed["c"]]


def test_a_groups_members_can_be_told_from_who_used_the_other(reference):
    dumps, job = recorded.read(recorded.folder("b")), recorded.left_out(recorded.JOBS["b"][1])
    users = {
        group: {rank for rank, dump in dumps.items() for each in dump["entries"] if each["process_group"][0] == group}
        for group in "12"
    }
    assert sorted(map(len, users.values())) == [3, 4]
    assert job.ranks == [*set(range(8)).difference(*users.values())]


def test_an_all_reduce_is_the_last_that_proves_that_a_rank_came():
    lost, others = recorded.JOBS["c"], recorded.read(recorded.folder("c"))
    number = lost[0](lost[1]).number
    for dump in others.values():
        after = [(each["profiling_name"], each["retired"]) for each in dump["entries"][number - 1 :]]
        assert after[:3] == [("nccl:all_reduce", True), ("nccl:broadcast", True), ("nccl:broadcast", True)]
        assert not any(ended for _, ended in after[3:])


@pytest.mark.parametrize("fault", ["never came", "something else", "other size"])
def test_made_up_dumps_say_to_the_library_what_they_were_made_to_say(tmp_path, fault):
    for seed in range(8):
        job = recorded.training(seed, 3 + seed, fault, kept=(2000, 10)[seed % 2])
        folder = tmp_path / str(seed)
        folder.mkdir()
        for rank, dump in job.dumps.items():
            (folder / f"rank_{rank}").write_bytes(pickle.dumps(dump, 2))
        assert explain([folder]).ranks == job.ranks, seed


def one_all_reduce():
    """What torch's own recorder keeps of one all-reduce on gloo."""
    group = dist.new_group(backend="gloo")
    dist.all_reduce(torch.ones(5), group=group)
    return torch._C._distributed_c10d._dump_fr_trace()


def test_made_up_dumps_have_what_torchs_own_have():
    """All keys of a dump and of an entry, and the same kinds of values."""
    torchs = pickle.loads(launch(one_all_reduce, world_size=1, device="cpu").returns[0])
    made = recorded.dump([recorded.Call("all_reduce", 5, 1)], 1, 1, "gloo")
    assert torchs.keys() <= made.keys()
    for key, value in torchs["entries"][-1].items():
        assert isinstance(made["entries"][0][key], type(value)), key
