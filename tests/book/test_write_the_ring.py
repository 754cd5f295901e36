"""The ring written in a page: what is said about right and wrong programs, here, in MicroPython and in a browser."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from ringzero.collectives import verify
from ringzero.collectives.schedule import Round, Schedule
from ringzero.costs.page.alpha_beta import all_reduce_lower_bound
from ringzero_course.figures import write_it
from ringzero_course.in_page.contributions import finished
from ringzero_course.in_page.program import with_lines
from ringzero_course.in_page.running import LIMIT, Run
from ringzero_course.in_page.verdict import judge, shortest_cycle
from ringzero_course.in_page.writing import WORLD_SIZES, answer, with_other_sizes
from tests.conftest import needs_browser
from tests.page_site import elsewhere, extension, make_site, watched, write_page

ROOT = Path(__file__).parents[2]

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
        "Look first at round 1 (× in the figure): rank 0 receives chunk 2 of rank 3 (line 4) as its own chunk 1 "
        "(line 4).",
        [4],
    ),
    "adds in the second half": (
        but("- step) % n)\n", "- step) % n, add=True)\n", last=True),
        4,
        "wrong",
        "Wrong: chunk 1 of rank 0 counts rank 0 twice, rank 2 four times and rank 3 three times. 12 of 16 chunks are "
        "wrong. Look first at round 4 (× in the figure): rank 0 adds chunk 3 of rank 3 to its own (line 6), and both "
        "already hold the contribution of rank 0.",
        [6],
    ),
    "never adds": (
        but(", add=True", ""),
        4,
        "wrong",
        "Look first at round 1 (× in the figure): rank 0 replaces its chunk 2 by that of rank 3 (line 4), which lacks "
        "the contribution of rank 0. Is `add=True` missing",
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
        "Wrong: chunk 0 of rank 0 counts rank 2 three times and rank 3 three times. 16 of 16 chunks are wrong. "
        "Look first at round 2 (× in the figure): rank 0 adds chunk 0 of rank 3 to its own (line 3), and both "
        "already hold the contribution of rank 3.",
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
    said = answer(RING, n)
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
    said = answer(THROUGH_RANK_0, 4)
    assert said["kind"] == "right"
    assert said["notes"] == [
        "The busiest rank, 0, sent 12 chunks of S/4, that is 3 S: 192 MiB if S is 64 MiB. The least that an all-reduce "
        "can do with is 2(N−1)/N · S = 1.5 S; this is 2 times as much. It took 6 rounds."
    ]
    assert said["rows"][0] == ["0", "3", "12", "3 S", "4 of 4"]
    assert "It took 12 rounds." in answer(TAKING_TURNS, 4)["notes"][0]


def test_a_program_that_is_right_here_may_be_wrong_with_other_numbers_of_ranks():
    assert with_other_sizes(RING, 4) == "It is also right with 2, 3, 5, 6, 7 and 8 ranks."
    assert answer(DOUBLING, 8)["kind"] == "right"
    assert with_other_sizes(DOUBLING, 8).startswith("But not with 3 ranks. Line 4: rank 2 sends to rank 3; ranks are")


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_with_its_line(name):
    program, n, kind, sentence, lines = WRONG[name]
    said = answer(program, n)
    assert said["kind"] == kind
    assert sentence in said["sentence"]
    assert said["lines"] == lines


def test_where_two_are_at_fault_both_lines_are_named():
    program = "def rank(r, n):\n    if r == 0:\n        yield send(1, 0)\n    else:\n        yield send(0, 0)\n"
    assert judge(Run(program, 2)).lines == [3, 5]


def test_an_unfinished_run_is_drawn_with_what_each_rank_waits_for():
    said = answer(WRONG["a rank ends after one round"][0], 3)
    assert said["svg"].count('class="round"') == 2
    assert ">waits to receive from rank 0</text>" in said["svg"]
    assert "rank 1 waits to receive from rank 0" in said["alt"]
    marked = answer(WRONG["wrong chunk received"][0], 4)["svg"]
    assert marked.count('class="cross"') == 1
    assert 'class="cross"' not in answer(RING, 4)["svg"]


def test_a_long_run_is_drawn_in_part():
    said = answer(WRONG["sends for ever"][0], 2)
    assert said["notes"] == [f"The figure shows the first 40 of {LIMIT // 2:,} rounds."]
    assert said["svg"].count('class="round"') == 40


def test_a_chunk_may_be_sent_and_added_to_at_once():
    run = Run(DOUBLING, 2)
    assert [run.held[r][0] for r in range(2)] == [finished(2, 0)] * 2
    assert max(arrival.round for arrival in run.arrivals) == 1


def test_messages_between_two_ranks_meet_in_order():
    program = "def rank(r, n):\n    if r: yield recv(0, 0), recv(0, 1)\n    else: yield send(1, [1]), send(1, [0])\n"
    arrivals = Run(program, 2).arrivals
    assert [(arrival.sent, arrival.chunk) for arrival in arrivals] == [(1, 0), (0, 1)]


def test_what_the_program_prints_is_kept_with_its_rank():
    said = answer("print('once')\ndef rank(r, n):\n    print('I am', r, end='')\n    yield ()\n", 2)
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
const [micropython, files, script] = process.argv.slice(2);
const {loadMicroPython} = await import(micropython);
const bytes = [];
const mp = await loadMicroPython({heapsize: 32 << 20, linebuffer: false, stdout: data => bytes.push(...data)});
for (const [path, text] of Object.entries(JSON.parse(fs.readFileSync(files, "utf8")))) {
    const folders = ["lib", ...path.split("/").slice(0, -1)];
    folders.forEach((_, i) => { try { mp.FS.mkdir("/" + folders.slice(0, i + 1).join("/")); } catch {} });
    mp.FS.writeFile("/lib/" + path, text);
}
mp.runPython(fs.readFileSync(script, "utf8"));
process.stdout.write(Buffer.from(bytes));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node on the PATH (apt install nodejs)")
def test_micropython_gives_the_same_answers(tmp_path):
    """All but the texts of Python's own exceptions."""
    asked = [(name, program, n) for name, (program, n, *_) in WRONG.items()]
    asked += [(name, program, n) for name, program in {**RIGHT, "doubling": DOUBLING}.items() for n in (2, 3, 8)]
    script = f"import json\nfrom ringzero_course.in_page.writing import answer\nfor name, program, n in {asked!r}:\n"
    (tmp_path / "script.py").write_text(f"{script}    print(json.dumps(answer(program, n)))\n")
    (tmp_path / "run.mjs").write_text(RUN)
    (tmp_path / "files.json").write_text(json.dumps(extension().sources()))
    micropython = ROOT / "book/_vendor/micropython/micropython.mjs"
    command = ["node", tmp_path / "run.mjs", micropython, tmp_path / "files.json", tmp_path / "script.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    there = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(there) == len(asked)
    for (name, program, n), given in zip(asked, there, strict=True):
        here = answer(program, n)
        for said in (here, given):
            if "Error: " in said["sentence"]:
                said["sentence"] = said["sentence"].split("Error: ")[0]
        assert given == json.loads(json.dumps(here)), (name, n)


# In a browser


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return make_site(tmp_path_factory.mktemp("site"))


@pytest.fixture
def visit(browser, site):
    """``visit(**options of the context)`` opens a page with the editor, from the disk, and its context."""
    contexts, requests, complaints = [], [], []

    def open_page(context=None, **options):
        if context is None:
            context = browser.new_context(**options)
            contexts.append(context)
        page = watched(context, requests, complaints)
        figure = write_it("ring", WRONG["everyone sends first"][0], RING, caption="Below.")
        page.goto(write_page(site / "page.html", figure, scripts=("engine.js", "write.js")).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert elsewhere(requests) == []
    assert complaints == []


def run(page, program=None):
    """What is said of the program in the editor, after Run."""
    if program is not None:
        page.locator("textarea").fill(program)
    page.locator(".rz-said").evaluate("said => said.replaceChildren()")
    page.get_by_role("button", name="Run").click()
    return said(page)


def said(page):
    page.locator(".rz-said[data-kind]:not([data-kind='']) p").first.wait_for()
    return page.locator(".rz-said p").first.text_content()


@needs_browser
def test_a_program_is_run_judged_and_drawn_in_the_page(visit):
    page = visit()
    assert not page.locator(".rz-instead").is_visible()
    assert page.locator("textarea").evaluate("area => area.labels[0].textContent") == "What rank r of n does:"
    assert page.locator(".rz-said").get_attribute("aria-live") == "polite"
    assert run(page) == WRONG["everyone sends first"][3]
    assert page.locator(".rz-lines strong").all_text_contents() == ["4\n"]
    assert page.locator(".rz-view .note").all_text_contents() == [f"waits to send to rank {r}" for r in (1, 2, 3, 0)]
    assert run(page, RING).startswith("Right: each of the 4 ranks holds all 4 chunks")
    page.get_by_text("It is also right with 2, 3, 5, 6, 7 and 8 ranks.").wait_for()
    assert page.locator(".rz-view .round").count() == 6
    assert page.locator(".rz-view tbody tr").count() == 4
    for name in ("adds in the second half", "one round too few", "N-1 rounds of the whole buffer"):
        program, n, _, sentence, _ = WRONG[name]
        assert n == 4
        assert sentence in run(page, program)
    page.locator("input[type=range]").focus()
    page.keyboard.press("End")
    page.wait_for_function("document.querySelectorAll('.rz-view tbody tr').length === 8")


@needs_browser
def test_a_loop_without_yield_is_ended_and_the_next_program_runs(visit):
    page = visit()
    assert run(page, "def rank(r, n):\n    while True:\n        pass\n    yield\n").startswith(
        "Stopped after 2 seconds"
    )
    assert page.locator(".rz-view svg").count() == 0
    assert run(page, RING).startswith("Right")
    assert run(page, "def rank(r, n):\n    print('<b>')\n    yield 3\n").startswith("Line 3: rank 0 yields 3;")
    assert page.locator(".rz-view > pre").text_content() == "rank 0: <b>"


@needs_browser
def test_the_keyboard_writes_python_and_is_not_trapped(visit):
    page = visit()
    area = page.locator("textarea")
    area.fill("")
    area.focus()
    for word in ("def rank(r, n):", "if r:", "yield ()"):
        page.keyboard.type(word)
        page.keyboard.press("Enter")
    page.keyboard.press("Backspace")
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.type("yield ()")
    text = "def rank(r, n):\n    if r:\n        yield ()\n    yield ()"
    assert area.input_value() == text
    page.keyboard.press("Control+a")
    page.keyboard.press("Tab")
    assert area.input_value() == "\n".join("    " + line for line in text.split("\n"))
    page.keyboard.press("Shift+Tab")
    assert area.input_value() == text
    page.keyboard.press("Control+z")
    assert area.input_value() != text
    page.keyboard.press("Control+Shift+z")
    page.keyboard.press("Control+Enter")
    assert said(page).startswith("Wrong: chunk 0 of rank 0 lacks the contributions of ranks 1, 2 and 3.")
    area.focus()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.type") == "range"
    area.focus()
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement !== document.querySelector('textarea')")
    assert area.input_value() == text


@needs_browser
def test_what_was_written_is_kept_and_reset_can_be_undone(visit):
    page = visit()
    page.locator("textarea").fill("x = 1")
    page.locator("input[type=range]").fill("6")
    again = visit(page.context)
    assert again.locator("textarea").input_value() == "x = 1"
    assert again.locator("output").text_content() == "6"
    again.get_by_role("button", name="Reset").click()
    assert again.locator("textarea").input_value() == WRONG["everyone sends first"][0]
    assert again.locator("output").text_content() == "4"
    again.keyboard.press("Control+z")
    assert again.locator("textarea").input_value() == "x = 1"
    again.locator("summary").press("Enter")
    again.get_by_role("button", name="Put it into the editor").click()
    assert again.locator("textarea").input_value() == RING


@needs_browser
def test_an_old_verdict_is_marked_as_old(visit):
    page = visit()
    run(page)
    assert page.locator(".rz-stale").count() == 0
    page.locator("textarea").press("x")
    assert page.locator(".rz-stale").count() == 1
    assert page.locator(".rz-lines strong").count() == 0
    run(page)
    assert page.locator(".rz-stale").count() == 0


@needs_browser
def test_without_a_script_or_python_the_solution_is_shown_and_on_paper_the_program(visit, site):
    page = visit(java_script_enabled=False)
    assert page.locator(".rz-instead svg").is_visible()
    assert page.get_by_text("In a browser with JavaScript").is_visible()
    assert not page.locator(".rz-editor").is_visible()
    page.locator("summary").click()
    assert page.locator("details pre").text_content() == RING
    assert page.locator("button:visible").count() == 0
    page = visit()
    page.emulate_media(media="print")
    assert page.locator(".rz-printed-code").text_content() == WRONG["everyone sends first"][0]
    assert page.locator(".rz-printed-code").is_visible()
    assert not page.locator("textarea").is_visible()


@needs_browser
def test_where_python_does_not_start_the_page_says_so(browser, site):
    context = browser.new_context()
    page = context.new_page()
    page.goto(write_page(site / "page.html", write_it("a", RING, RING), scripts=("engine.js", "write.js")).as_uri())
    page.evaluate("""() => {
        ringzero.python.call = async () => { throw Object.assign(new Error("no"), { type: "EngineError" }); };
    }""")
    assert run(page).startswith("Your program cannot be run, because Python does not start in this browser.")
    assert page.locator(".rz-instead svg").is_visible()
    context.close()


@needs_browser
def test_it_fits_a_telephone(visit):
    page = visit(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    run(page, RING)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    assert page.locator("textarea").evaluate("area => parseFloat(getComputedStyle(area).fontSize)") >= 16


def test_a_solution_that_is_wrong_is_not_shown():
    with pytest.raises(ValueError, match="not right with 3 ranks: Line 4: rank 2 sends to rank 3"):
        write_it("ring", RING, DOUBLING)
    assert "<script>x" not in write_it("ring", "# </script><script>x", RING).html
