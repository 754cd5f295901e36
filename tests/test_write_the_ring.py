"""The ring written in a page: what is said about right and wrong programs, here, in MicroPython and in a browser."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from ringzero.collectives import verify
from ringzero.collectives.schedule import Round, Schedule
from ringzero.costs.alpha_beta import all_reduce_lower_bound
from ringzero.in_page.contributions import finished
from ringzero.in_page.program import with_lines
from ringzero.in_page.running import LIMIT, Run
from ringzero.in_page.verdict import judge, shortest_cycle
from ringzero.in_page.writing import WORLD_SIZES, answer, with_other_sizes

ROOT = Path(__file__).parents[1]
COLORS = [["#e69f00", "#000000"], ["#0072b2", "#ffffff"]]

RING = """def rank(r, n):
    right, left = (r + 1) % n, (r - 1) % n
    for step in range(n - 1):
        yield send(right, (r - 1 - step) % n), recv(left, (r - 2 - step) % n, add=True)
    for step in range(n - 1):
        yield send(right, (r - step) % n), recv(left, (r - 1 - step) % n)
"""
TAKING_TURNS = """def rank(r, n):
    right, left = (r + 1) % n, (r - 1) % n
    for half, add in ((1, True), (0, False)):
        for step in range(n - 1):
            there, here = send(right, (r - half - step) % n), recv(left, (r - half - 1 - step) % n, add=add)
            for turn in (there, here) if r % 2 == 0 else (here, there):
                yield turn
"""
THROUGH_RANK_0 = """def rank(r, n):
    if r == 0:
        for other in range(1, n):
            yield recv(other, range(n), add=True)
        for other in range(1, n):
            yield send(other, range(n))
    else:
        yield send(0, range(n))
        yield recv(0, range(n))
"""
DOUBLING = """def rank(r, n):
    distance = 1
    while distance < n:
        yield send(r ^ distance, range(n)), recv(r ^ distance, range(n), add=True)
        distance *= 2
"""


def but(old, new, last=False):
    """The ring with the first place (or the last) of ``old`` changed."""
    assert old in RING
    return new.join(RING.rsplit(old, 1) if last else RING.split(old, 1))


# {name: (program, ranks, kind, a part of the sentence, lines)}
WRONG = {
    "everyone sends first": (
        but(", recv", "; yield recv"),
        4,
        "deadlock",
        "Deadlock: rank 0 waits to send to rank 1 (line 4); rank 1 waits to send to rank 2 (line 4); "
        "rank 2 waits to send to rank 3 (line 4); rank 3 waits to send to rank 0 (line 4): a cycle. "
        "Nobody receives. Let every other rank receive first, or yield send and recv together.",
        [4],
    ),
    "everyone receives first": (
        "def rank(r, n):\n    yield recv((r - 1) % n, 0)\n    yield send((r + 1) % n, 0)\n",
        3,
        "deadlock",
        "rank 1 waits to receive from rank 0 (line 2): a cycle. Nobody sends.",
        [2],
    ),
    "receives from the right": (
        but("recv(left", "recv(right"),
        4,
        "deadlock",
        "rank 0 waits to send to rank 1 and to receive from rank 1 (line 4); rank 1 waits to send to rank 2 and to "
        "receive from rank 2 (line 4); rank 2 waits to send to rank 3 and to receive from rank 3 (line 4); "
        "rank 3 waits to send to rank 0 and to receive from rank 0 (line 4): a cycle. "
        "Rank 0 sends to rank 1, but rank 1 receives from rank 2.",
        [4],
    ),
    "a neighbour that is none": (
        but("(r - 1) % n", "(r + 2) % n"),
        4,
        "deadlock",
        "rank 0 waits to receive from rank 2 (line 4); rank 2 waits to receive from rank 0 (line 4): a cycle. "
        "Rank 0 receives from rank 2, but rank 2 sends to rank 3.",
        [4],
    ),
    "wrong chunk received": (
        but("(r - 2 - step)", "(r - 3 - step)"),
        4,
        "wrong",
        "Look first at round 1: rank 0 receives chunk 2 of rank 3 (line 4) as its own chunk 1 (line 4).",
        [4],
    ),
    "adds in the second half": (
        but("- step) % n)\n", "- step) % n, add=True)\n", last=True),
        4,
        "wrong",
        "Wrong: chunk 1 of rank 0 counts rank 0 twice, rank 2 four times, rank 3 three times. 12 of 16 chunks are "
        "wrong. Look first at round 4: rank 0 adds chunk 3 of rank 3 to its own (line 6), and both already hold the "
        "contribution of rank 0.",
        [6],
    ),
    "never adds": (
        but(", add=True", ""),
        4,
        "wrong",
        "Look first at round 1: rank 0 replaces its chunk 2 by that of rank 3 (line 4), which lacks the contribution "
        "of rank 0. Is `add=True` missing",
        [4],
    ),
    "one round too few": (
        but("range(n - 1)", "range(n - 2)", last=True),
        4,
        "wrong",
        "Wrong: chunk 1 of rank 0 lacks the contribution of rank 1. 4 of 16 chunks are wrong. "
        "Each chunk is finished on some rank, but not all ranks have received it.",
        [],
    ),
    "only the first half": (
        RING[: RING.rindex("    for")],
        3,
        "wrong",
        "6 of 9 chunks are wrong. Each chunk is finished on some rank",
        [],
    ),
    "N-1 rounds of the whole buffer": (
        "def rank(r, n):\n    for step in range(n - 1):\n"
        "        yield send((r + 1) % n, range(n)), recv((r - 1) % n, range(n), add=True)\n",
        4,
        "wrong",
        "Wrong: chunk 0 of rank 0 counts rank 2 three times, rank 3 three times. 16 of 16 chunks are wrong. "
        "Look first at round 2: rank 0 adds chunk 0 of rank 3 to its own (line 3), and both already hold the "
        "contribution of rank 3.",
        [3],
    ),
    "sends nothing": (
        "def rank(r, n):\n    yield ()\n",
        2,
        "wrong",
        "Wrong: chunk 0 of rank 0 lacks the contribution of rank 1. 4 of 4 chunks are wrong. No chunk is finished",
        [],
    ),
    "a rank ends early": (
        but("    for", "    if r == 2:\n        return\n    for"),
        4,
        "deadlock",
        "Deadlock: rank 1 waits to send to rank 2 (line 6), but rank 2 has ended: it received nothing from rank 1. "
        "Ranks 0 and 3 wait too.",
        [6],
    ),
    "a rank ends after one round": (
        but("        yield", "        if r == 0 and step == 1:\n            return\n        yield"),
        3,
        "deadlock",
        "but rank 0 has ended: it sent only 1 message to rank 1. Rank 2 waits too.",
        [6],
    ),
    "no yield at all": (
        "def rank(r, n):\n    send((r + 1) % n, 0)\n",
        3,
        "error",
        "Line 2: `send(…)` without `yield` does nothing. Write `yield send(…)`.",
        [2],
    ),
    "one yield forgotten": (
        "def rank(r, n):\n    send((r + 1) % n, 0)\n    yield recv((r - 1) % n, 1)\n",
        3,
        "error",
        "Line 2: `send(…)` without `yield` does nothing.",
        [2],
    ),
    "sizes differ": (
        "def rank(r, n):\n    yield (send((r + 1) % n, [0, 1]),\n           recv((r - 1) % n, 2))\n",
        3,
        "error",
        "Rank 0 sends 2 chunks (line 2) to rank 1, which receives 1 chunk (line 3). Both must name equally many.",
        [2, 3],
    ),
    "to itself": ("def rank(r, n):\n    yield send(r, 0)\n", 2, "error", "Line 2: rank 0 sends to itself.", [2]),
    "no such rank": (
        "def rank(r, n):\n    yield send(r + 1, 0), recv(r, 1)\n",
        2,
        "error",
        "Line 2: rank 0 receives from itself.",
        [2],
    ),
    "no such chunk": (
        but("(r - step) % n", "r - step"),
        4,
        "error",
        "Line 6: rank 0 sends chunk -1; chunks are numbered 0 to 3. Is a `% n` missing?",
        [6],
    ),
    "half a chunk": (
        "def rank(r, n):\n    yield send(1 - r, r / 2)\n",
        2,
        "error",
        "Line 2: rank 0 sends chunk 0.0; chunks are whole numbers.",
        [2],
    ),
    "no chunk": ("def rank(r, n):\n    yield send(1 - r, [])\n", 2, "error", "sends no chunk; name one or more.", [2]),
    "a chunk twice": ("def rank(r, n):\n    yield send(1 - r, (1, 1))\n", 2, "error", "chunk 1 twice in one", [2]),
    "sends what is being replaced": (
        "def rank(r, n):\n    yield send(1 - r, 1), recv(1 - r, 1)\n",
        2,
        "error",
        "Line 2: rank 0 replaces its chunk 1 and sends chunk 1 in one yield; either may come first.",
        [2],
    ),
    "yields a number": (
        "def rank(r, n):\n    x = 7\n    yield x\n",
        2,
        "error",
        "Line 3: rank 0 yields 7; yield what `send(…)` or `recv(…)` gives.",
        [3],
    ),
    "yields one send twice": (
        "def rank(r, n):\n    s = send(1 - r, 0)\n    yield s, s\n",
        2,
        "error",
        "Line 2: rank 0 yields one `send` a second time; call it again.",
        [2],
    ),
    "calls send wrongly": ("def rank(r, n):\n    yield send(1)\n", 2, "error", "Line 2: call `send(dst, chunk)`.", [2]),
    "an exception": (
        "def half(n):\n    return n // 0\n\ndef rank(r, n):\n    yield send(1 - r, half(n))\n",
        2,
        "error",
        "Line 2: ZeroDivisionError: ",
        [2],
    ),
    "no Python": ("def rank(r, n):\n    x = = 2\n", 2, "error", "Line 2: SyntaxError: invalid syntax", [2]),
    "no function": ("x = 1\n", 2, "error", "There is no function `rank`. Begin with `def rank(r, n):`", []),
    "another function": (
        "def rank(r):\n    yield\n",
        2,
        "error",
        "`rank` must take two arguments: `def rank(r, n):`",
        [],
    ),
    "no generator": ("def rank(r, n):\n    return r\n", 2, "error", "`rank` never yields. Write `yield` before", []),
    "sends for ever": (
        "def rank(r, n):\n    while True:\n        yield send(1 - r, 0), recv(1 - r, 1, add=True)\n",
        2,
        "endless",
        "Stopped after 2,000 yields: rank 0 still goes on (line 3). Does its loop end?",
        [3],
    ),
    "yields nothing for ever": (
        "def rank(r, n):\n    while True:\n        yield ()\n",
        2,
        "endless",
        "Stopped after 2,000 yields: rank 0 still goes on. Does its loop end?",
        [],
    ),
}
RIGHT = {"ring": RING, "taking turns": TAKING_TURNS, "through rank 0": THROUGH_RANK_0}


@pytest.mark.parametrize("n", WORLD_SIZES)
def test_the_ring_is_right_and_sends_as_little_as_possible(n):
    run = Run(RING, n)
    assert judge(run).kind == "right"
    assert [sent / n for sent in run.chunks_sent] == pytest.approx([all_reduce_lower_bound(n)] * n)
    assert run.messages == {(rank, (rank + 1) % n): 2 * (n - 1) for rank in range(n)}
    said = answer(RING, n, COLORS)
    assert "No all-reduce can send less" in said["notes"][0]
    assert f"It took {2 * (n - 1)} rounds." in said["notes"][0]


@pytest.mark.parametrize("n", WORLD_SIZES)
@pytest.mark.parametrize("name", RIGHT)
def test_what_was_run_is_a_schedule_that_the_library_proves(name, n):
    """Its rounds are those of a ``Schedule``, and ``verify`` knows nothing of the code that made them."""
    run = Run(RIGHT[name], n)
    rounds = [[a for a in run.arrivals if a.round == number] for number in range(1, 1 + len(run.arrivals))]
    columns = [
        [[getattr(a, key) for a in round] for key in ("src", "dst", "chunk", "add")] for round in rounds if round
    ]
    schedule = Schedule("all_reduce", name, n, n, [Round(*column) for column in columns])
    verify(schedule)
    assert judge(run).kind == "right"
    assert schedule.bytes_sent(4 * n, 1).tolist() == [4 * sent for sent in run.chunks_sent]


def test_more_than_the_bound_is_said_and_so_is_waiting_in_turns():
    said = answer(THROUGH_RANK_0, 4, COLORS)
    assert said["kind"] == "right"
    assert said["notes"] == [
        "The busiest rank, 0, sent 12 chunks of S/4, that is 3 S: 192 MiB if S is 64 MiB. The least that an all-reduce "
        "can do with is 2(N−1)/N · S = 1.5 S; this is 2 times as much. It took 6 rounds."
    ]
    assert said["rows"][0] == ["0", "3", "12", "3 S", "4 of 4"]
    assert "It took 12 rounds." in answer(TAKING_TURNS, 4, COLORS)["notes"][0]


def test_a_program_that_is_right_here_may_be_wrong_with_other_numbers_of_ranks():
    assert with_other_sizes(RING, 4) == "It is also right with 2, 3, 5, 6, 7 and 8 ranks."
    assert answer(DOUBLING, 8, COLORS)["kind"] == "right"
    assert with_other_sizes(DOUBLING, 8).startswith("But not with 3 ranks. Line 4: rank 2 sends to rank 3; ranks are")


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_with_its_line(name):
    program, n, kind, sentence, lines = WRONG[name]
    said = answer(program, n, COLORS)
    assert said["kind"] == kind
    assert sentence in said["sentence"]
    assert said["lines"] == lines


def test_where_two_are_at_fault_both_lines_are_named():
    program = "def rank(r, n):\n    if r == 0:\n        yield send(1, 0)\n    else:\n        yield send(0, 0)\n"
    assert judge(Run(program, 2)).lines == [3, 5]


def test_an_unfinished_run_is_drawn_with_what_each_rank_waits_for():
    said = answer(WRONG["a rank ends after one round"][0], 3, COLORS)
    assert said["content"].count('class="round"') == 2
    assert ">waits to receive from 0</text>" in said["content"]
    assert "rank 1 waits to receive from 0" in said["alt"]
    marked = answer(WRONG["wrong chunk received"][0], 4, COLORS)["content"]
    assert marked.count('class="cross"') == 1
    assert 'class="cross"' not in answer(RING, 4, COLORS)["content"]


def test_a_long_run_is_drawn_in_part():
    said = answer(WRONG["sends for ever"][0], 2, COLORS)
    assert said["notes"] == [f"The figure shows the first 40 of {LIMIT // 2:,} rounds."]
    assert said["content"].count('class="round"') == 40


def test_a_chunk_may_be_sent_and_added_to_at_once():
    run = Run(DOUBLING, 2)
    assert [run.held[r][0] for r in range(2)] == [finished(2, 0)] * 2
    assert max(arrival.round for arrival in run.arrivals) == 1


def test_messages_between_two_ranks_meet_in_order():
    program = "def rank(r, n):\n    if r: yield recv(0, 0), recv(0, 1)\n    else: yield send(1, [1]), send(1, [0])\n"
    arrivals = Run(program, 2).arrivals
    assert [(arrival.sent, arrival.chunk) for arrival in arrivals] == [(1, 0), (0, 1)]


def test_what_the_program_prints_is_kept_with_its_rank():
    said = answer("print('once')\ndef rank(r, n):\n    print('I am', r, end='')\n    yield ()\n", 2, COLORS)
    assert said["printed"] == ["once", "rank 0: I am 0", "rank 1: I am 1"]


def test_calls_of_send_and_recv_learn_their_line_and_nothing_else_changes():
    assert with_lines("a\nsend(1), recv(2)") == "a\nsend[2](1), recv[2](2)"
    for same in ("resend(1)", "x.send(1)", "def send(x):", "    def recv(x):", "my_recv(1)", "send = 3"):
        assert with_lines(same) == same


def test_the_shortest_cycle_is_named():
    assert shortest_cycle([[1], [2, 3], [1], [0]]) == [1, 2]
    assert shortest_cycle([[1], [2], []]) == []


# In MicroPython

RUN = """
import fs from "node:fs";
const [micropython, source, script] = process.argv.slice(2);
const {loadMicroPython} = await import(micropython);
const bytes = [];
const mp = await loadMicroPython({heapsize: 32 << 20, linebuffer: false, stdout: data => bytes.push(...data)});
for (const place of ["", "/ringzero", "/ringzero/costs", "/ringzero/in_page"]) mp.FS.mkdir("/lib" + place);
mp.FS.writeFile("/lib/ringzero/__init__.py", "");
for (const room of ["costs", "in_page"])
    for (const file of fs.readdirSync(`${source}/${room}`).filter(name => name.endsWith(".py")))
        mp.FS.writeFile(`/lib/ringzero/${room}/${file}`, fs.readFileSync(`${source}/${room}/${file}`));
mp.runPython(fs.readFileSync(script, "utf8"));
process.stdout.write(Buffer.from(bytes));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node on the PATH (apt install nodejs)")
def test_micropython_gives_the_same_answers(tmp_path):
    """All but the texts of Python's own exceptions."""
    asked = [(name, program, n) for name, (program, n, *_) in WRONG.items()]
    asked += [(name, program, n) for name, program in {**RIGHT, "doubling": DOUBLING}.items() for n in (2, 3, 8)]
    script = f"import json\nfrom ringzero.in_page.writing import answer\nfor name, program, n in {asked!r}:\n"
    (tmp_path / "script.py").write_text(f"{script}    print(json.dumps(answer(program, n, {COLORS!r})))\n")
    (tmp_path / "run.mjs").write_text(RUN)
    micropython = ROOT / "book/_vendor/micropython/micropython.mjs"
    command = ["node", tmp_path / "run.mjs", micropython, ROOT / "src/ringzero", tmp_path / "script.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    there = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(there) == len(asked)
    for (name, program, n), given in zip(asked, there, strict=True):
        here = answer(program, n, COLORS)
        for said in (here, given):
            if "Error: " in said["sentence"]:
                said["sentence"] = said["sentence"].split("Error: ")[0]
        assert given == json.loads(json.dumps(here)), (name, n)
