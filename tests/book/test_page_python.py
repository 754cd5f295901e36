"""Python in a page (``book/_page/engine.js``), in a browser, from the disk."""

import gzip

import pytest

from tests.conftest import needs_browser
from tests.page_site import elsewhere, extension, make_site, watched, write_page

make = extension()
SHAPE = ("batch", "sequence", "hidden", "heads")


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    site = make_site(tmp_path_factory.mktemp("site"))
    context = browser.new_context()
    requests, complaints = [], []
    page = watched(context, requests, complaints)
    page.goto(write_page(site / "page.html", scripts=("engine.js",)).as_uri())
    page.wait_for_function("window.ringzero")
    assert [url.rsplit("/", 1)[1] for url in requests] == ["page.html", "ringzero.css", "engine.js"]
    yield page
    context.close()
    assert elsewhere(requests) == []
    assert complaints == []


def run(page, expression, given=None):
    """What ``expression`` resolves to, or the error that Python raised, as ``{"type", "message", "trace"}``."""
    caught = "error => ({ type: error.type, message: error.message, trace: error.trace })"
    return page.evaluate(f"given => ringzero.python.{expression}.catch({caught})", given)


@needs_browser
def test_a_function_is_called_with_plain_data(page):
    given = {"params": 70_000_000_000, "stage": 2, "world_size": 8}
    assert run(page, "call('ringzero.costs.page.memory', 'model_state_bytes', given)", given) == 262.5e9
    shapes = run(page, "call('ringzero.costs.page.transformer', 'layer_matmuls', given)", dict.fromkeys(SHAPE, 8))
    assert shapes[0] == ["Q, K, V", 1, 64, 8, 24]


@needs_browser
def test_a_program_runs_with_its_own_names(page):
    program = "print('é', n)\nimport math\nresult = {'root': math.sqrt(n), 'none': None, 'list': (1, 2)}"
    ran = run(page, "exec(given, { n: 16 })", program)
    assert ran == {"value": {"root": 4.0, "none": None, "list": [1, 2]}, "printed": "é 16\n"}
    assert run(page, "exec(given)", "result = n")["type"] == "NameError"


@needs_browser
@pytest.mark.parametrize(
    ("program", "kind", "message"),
    [
        (
            "from ringzero.costs.page.inputs import ranks\nranks(0)",
            "ValueError",
            "world_size is 0; give at least 1 rank",
        ),
        ("x = 1\nif x:\n  y =\n", "SyntaxError", "invalid syntax"),
        ("def f(n): return f(n + 1)\nf(0)", "RuntimeError", "maximum recursion depth exceeded"),
        ("raise SystemExit", "SystemExit", ""),
        ("result = 1e999", "ValueError", "the result has a number that is not finite"),
    ],
)
def test_what_python_raises_comes_as_text(page, program, kind, message):
    error = run(page, "exec(given)", program)
    assert (error["type"], error["message"]) == (kind, message)
    if kind == "SyntaxError":
        assert "line 3" in error["trace"]


@needs_browser
def test_a_program_without_end_is_ended_and_the_next_one_runs(page):
    error = run(page, "exec('while True: pass', {}, { seconds: 0.2 })")
    assert (error["type"], error["message"]) == ("Timeout", "ended after 0.2 s")
    assert run(page, "exec('result = 7')")["value"] == 7


@needs_browser
def test_calls_are_answered_in_turn(page):
    calls = "[1, 2, 3].map(n => ringzero.python.exec('result = n', { n }))"
    answered = page.evaluate(f"() => Promise.all({calls})")
    assert [answer["value"] for answer in answered] == [1, 2, 3]


@needs_browser
def test_without_the_bundle_the_call_says_so(browser, tmp_path):
    site = make_site(tmp_path / "site")
    (site / "_static/micropython.js").unlink()
    context = browser.new_context()
    page = context.new_page()
    page.goto(write_page(site / "page.html", scripts=("engine.js",)).as_uri())
    page.wait_for_function("window.ringzero")
    for _ in range(2):
        error = run(page, "start().then(() => 'started')")
        assert error["type"] == "EngineError"
        assert "micropython.js does not load" in error["message"]
    context.close()


def test_what_a_page_loads_is_small():
    scripts = [(make.ROOT / "book/_page" / name).read_bytes() for name in ("engine.js", "calculator.js")]
    assert sum(len(gzip.compress(text)) for text in (*scripts, make.bundle().encode())) < 400_000


def test_only_pages_that_use_python_get_its_scripts():
    class Sphinx:
        def __init__(self):
            self.added = []
            self.add_js_file = self.added.append

    calculator, editor = '<div class="rz-calculator">', '<div class="rz-writing">'
    for body, expected in (
        ("<p>a page</p>", []),
        (calculator, ["engine.js", "calculator.js"]),
        (editor, ["engine.js", "write.js"]),
        (editor + calculator, ["engine.js", "calculator.js", "write.js"]),
    ):
        app = Sphinx()
        make.add_scripts(app, "page", "page.html", {"body": body}, None)
        assert app.added == expected
