"""Calculators: what they compute, and how they behave in a browser, from the disk."""

import gzip
import json
import math
import random
import re
from urllib.parse import parse_qs, urlparse
from xml.etree import ElementTree

import pytest

from ringzero.costs.page import calculators as functions
from ringzero.costs.page import memory, overlap, throughput, transformer
from ringzero.costs.page.alpha_beta import seconds
from ringzero.costs.page.coefficients import COEFFICIENTS
from ringzero.drawing import palette
from ringzero.steps.machine import dgx
from ringzero_course.figures import calculator, questions, readout
from ringzero_course.figures.calculators import Choice, Number, powers_of_two, round_numbers
from tests.conftest import needs_browser
from tests.page_site import elsewhere, extension, make_site, watched, write_page

NAMES = ("does_it_fit", "will_it_overlap", "which_all_reduce", "what_a_run_costs")
FIGURES = {name: getattr(questions, name)() for name in NAMES}


def spec_of(figure):
    """What the page's script knows of a calculator."""
    return json.loads(re.search(r'<script type="application/json">(.*)</script>', figure.html)[1])


# ---- what they compute


def rows_of(result):
    return {what: value for what, value, _ in result["rows"]}


def test_memory_is_that_of_the_memory_formulas():
    result = functions.does_it_fit("GPT-3 175B", "H100", 3, 1024, 1, 2048, "selective")
    rows = rows_of(result)
    params = transformer.gpt_params(96, 12288, 50257, 2048)
    assert [rows[part] * 1e9 for part in functions.PARTS[:3]] == pytest.approx(
        memory.model_state_parts(params, 3, 1024)
    )
    assert rows["activations"] * 1e9 == 96 * 34 * 2048 * 12288  # 34 sbh a layer without the s x s matrices
    assert rows["gathered layers"] * 1e9 == pytest.approx(3 * 2 * (12 * 12288**2 + 13 * 12288))
    assert result["answer"] == pytest.approx(sum(rows[part] for part in functions.PARTS))
    assert result["verdict"] == "It does not fit."
    totals = [sum(values) for _, values in result["plot"]["bars"]]
    assert totals == sorted(totals, reverse=True)
    full = functions.does_it_fit("GPT-3 175B", "H100", 3, 1024, 1, 2048, "full")
    inputs, a_layer = 96 * 2 * 2048 * 12288, 34 * 2048 * 12288 + 5 * 96 * 2048 * 2048
    assert rows_of(full)["activations"] * 1e9 == inputs + a_layer  # the layer that runs again is there whole
    assert full["verdict"] == "It fits."


NEEDED = "tokens a micro-batch needs: data parallel"


def overlapping(gpu="H100", reached=0.4, bandwidth=50e9, machines=16, piece=25e6, tokens=4096, micro_batches=8):
    return functions.will_it_overlap(gpu, reached, bandwidth, machines, piece, tokens, micro_batches)


@pytest.mark.parametrize("nodes", [1, 2, 16, 128])
@pytest.mark.parametrize("piece", [25e6, 400e6])
def test_overlap_is_that_of_the_overlap_formulas_on_the_machine_of_the_schedules(nodes, piece):
    rows, machine = rows_of(overlapping(machines=nodes, piece=piece)), dgx("DGX H100", nodes)
    flops, ranks = 0.4 * machine.peak_flops, machine.ranks
    of_pieces, of_all = (machine.effective_bandwidth("all_reduce", size=size) for size in (piece, math.inf))
    gathered = machine.effective_bandwidth("all_gather", size=piece)
    assert rows[NEEDED] == pytest.approx(overlap.min_tokens_for_data_parallel(flops, of_pieces, ranks))
    least = overlap.min_tokens_for_data_parallel(flops, of_all, ranks)
    assert rows["with one buffer of any size, no latency"] == pytest.approx(least)
    assert rows["ZeRO-3"] == pytest.approx(overlap.min_tokens_for_zero3(flops, gathered, ranks))
    assert rows["all-reduce of a piece"] == pytest.approx(1e6 * machine.seconds("all_reduce", piece))
    ratio = rows["communication over computing: data parallel"]
    assert ratio == pytest.approx(rows[NEEDED] / 4096)
    assert least <= rows[NEEDED]


def test_overlap_says_whether_it_hides_and_for_how_long_a_step_waits():
    needed = rows_of(overlapping())[NEEDED]
    assert overlapping(tokens=needed * 1.01)["verdict"].startswith("The all-reduce hides")
    assert overlapping(tokens=needed * 0.99)["verdict"].startswith("The all-reduce takes longer")
    waits = [rows_of(overlapping(tokens=needed / 2, micro_batches=m)) for m in (1, 10)]
    once, ten = (
        [rows[f"waiting, but for the last piece: {how}"] for how in ("data parallel", "ZeRO-3")] for rows in waits
    )
    assert once[0] == pytest.approx(100 * 2 / 3)  # a backward pass is two thirds of the computing
    assert ten[0] == pytest.approx(once[0] / 10)  # one all-reduce a step, however many micro-batches
    assert ten[1] == once[1]  # gathers in each of them
    with pytest.raises(ValueError, match="gpu is 'T4'; it has no NVLink"):
        overlapping(gpu="T4")


@pytest.mark.parametrize("ranks", [2, 6, 8, 48, 1000])
def test_the_fastest_all_reduce_changes_where_it_is_said_to(ranks):
    alpha, bandwidth = 5e-6, 50e9
    result = functions.which_all_reduce(ranks, 25e6, alpha, bandwidth)
    changes = [(what.removesuffix(" is fastest from"), mb) for what, mb, _ in result["rows"] if "fastest from" in what]
    assert ranks == 2 or changes
    for name, at in changes:
        for size, is_fastest in ((at * 1.001e6, True), (at * 0.999e6, False)):
            assert (functions.which_all_reduce(ranks, size, alpha, bandwidth)["answer"] == name) == is_fastest
    ring = seconds(COEFFICIENTS["all_reduce"]["ring"](ranks), 25e6, alpha, 1 / bandwidth)
    assert rows_of(result)["ring"] == pytest.approx(ring * 1e3)


def test_a_run_costs_what_throughput_says():
    result = functions.what_a_run_costs(70e9, 15e12, "H100", 2048, 0.4, 2)
    cost = throughput.run_cost(70e9, 15e12, 2048, 989e12, 0.4, 2)
    assert (result["answer"], rows_of(result)["dollars"]) == (cost["days"], cost["dollars"])
    assert result["verdict"] == "Months, if nothing fails."


# ---- how it is written and drawn


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"),
        (0.000123456, "0.000123"),
        (0.9996, "1"),
        (999.4, "999"),
        (999.6, "1,000"),
        (4096, "4,096"),
        (999_499, "999,499"),
        (999_600, "1 million"),
        (1.5e12, "1.5 trillion"),
        (-2500, "-2,500"),
    ],
)
def test_numbers_in_words(value, words):
    assert readout.number(value) == words


def drawn(plot):
    """A function that gives all elements of a tag in the plot's drawing."""
    svg = ElementTree.fromstring(readout.draw(plot, "title"))
    return lambda tag: [*svg.iter(f"{{http://www.w3.org/2000/svg}}{tag}")]


def numbers(element, *names):
    return [float(element.get(name)) for name in names]


def test_a_plot_of_lines_is_to_scale():
    plot = {"kind": "lines", "x": "size", "y": "time", "level": ("one", 1.0), "at": 10.0}
    elements = drawn(plot | {"series": [("line <1>", [1.0, 100.0], [1.0, 100.0])]})
    ends = [[float(place) for place in point.split(",")] for point in elements("polyline")[0].get("points").split()]
    (left, bottom), (right, top) = ends
    x, y = numbers(elements("circle")[0], "cx", "cy")
    assert (x, y) == (pytest.approx((left + right) / 2), pytest.approx((top + bottom) / 2, abs=0.1))
    level, here = [line for line in elements("line") if line.get("stroke-dasharray")]
    assert numbers(level, "y1", "y2") == [bottom, bottom]
    assert numbers(here, "x1", "x2") == [x, x]
    assert "line <1>" in [text.text for text in elements("text")]
    assert elements("svg")[0].get("aria-label").endswith("at 10: line <1> 10")


def test_a_plot_of_bars_is_to_scale():
    plot = {"kind": "bars", "x": "GB", "parts": ["a", "b"], "level": ("most", 40.0), "at": 0}
    elements = drawn(plot | {"bars": [("short", [10.0, 20.0]), ("long", [0.0, 900.0])]})
    boxes = {box[0].text: numbers(box, "x", "width") for box in elements("rect") if len(box)}
    (start, ten), (_, twenty), (_, cut_off) = boxes.values()
    assert [*boxes] == ["short, a: 10", "short, b: 20", "long, b: 900"]
    assert twenty == pytest.approx(2 * ten, abs=0.1)
    (level,) = [line for line in elements("line") if line.get("stroke-dasharray")]
    forty = numbers(level, "x1")[0] - start
    assert forty == pytest.approx(4 * ten, abs=0.2)
    assert forty < cut_off
    assert "900 →" in [text.text for text in elements("text")]  # cut off, and said to be


# ---- what a page gets


@pytest.mark.parametrize("name", NAMES)
def test_every_state_of_the_grid_is_there(name):
    spec = spec_of(FIGURES[name])
    assert len(spec["states"]) == math.prod(len(field["grid"]) for field in spec["fields"]) > 1
    assert len({state["html"] for state in spec["states"]}) == len(spec["states"])
    for state in spec["states"]:
        assert state["html"].count("<svg") == 1
        assert "nan" not in state["html"]


def test_a_start_or_a_grid_that_a_field_does_not_have_is_refused():
    fields = {"gpu": Choice("GPU", ["A100", "H100"], "H200")}
    with pytest.raises(ValueError, match="gpu has 'H200', which is not among its values"):
        calculator(functions.does_it_fit, fields)
    fields = {"world_size": Number("GPUs", powers_of_two(1, 8), 4, grid=[3])}
    with pytest.raises(ValueError, match="world_size has 3, which is not among its values"):
        calculator(functions.does_it_fit, fields)


def test_a_page_with_all_of_them_is_small():
    pieces = [figure.html.encode() for figure in FIGURES.values()] + [extension().bundle().encode()]
    pieces += [(extension().ROOT / "book/_page" / name).read_bytes() for name in ("engine.js", "calculator.js")]
    assert sum(len(gzip.compress(piece)) for piece in pieces) < 450_000


# ---- in a browser


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    site = make_site(tmp_path_factory.mktemp("site"))
    write_page(site / "all.html", *FIGURES.values())
    for name, figure in FIGURES.items():
        write_page(site / f"{name}.html", figure)
    write_page(site / "no_engine.html", FIGURES["will_it_overlap"], scripts=("calculator.js",))
    all_reduce = {
        "world_size": Number("ranks", powers_of_two(1, 64), 8, whole=True),
        "size": Number("buffer", [1, 10, 100], 10, "MB", scale=1e6),
        "alpha": Number("latency", [0, 1, 5], 5, "µs", scale=1e-6),
        "bandwidth": Number("bandwidth", round_numbers(1, 100), 50, "GB/s", scale=1e9),
    }
    write_page(site / "from_nothing.html", calculator(functions.which_all_reduce, all_reduce))
    return site


@pytest.fixture
def visit(browser, site):
    """``visit(name, **context options)`` opens a page. At the end none may have complained, or asked another site."""
    contexts, requests, complaints = [], [], []

    def open_page(name, **options):
        contexts.append(browser.new_context(**options))
        page = watched(contexts[-1], requests, complaints)
        page.goto(name if "://" in name else f"{site.as_uri()}/{name}")
        return page

    open_page.requests = requests
    yield open_page
    for context in contexts:
        context.close()
    assert elsewhere(requests) == []
    assert complaints == []


def box_of(page, name):
    return page.locator(f"#rz-{name}")


def when_said(page, name, words):
    """Wait until the calculator's status says it. A table is not yet there while Python computes."""
    page.wait_for_function(
        "([name, words]) => document.querySelector(`#rz-${name} .rz-status`).textContent.includes(words)",
        arg=[name, words],
    )


def draw_arguments(dice, spec):
    """Of each field any value it takes, as its function gets it; now and then one that no field would take."""
    given = {}
    for field in spec["fields"]:
        if "values" in field:
            given[field["name"]] = dice.choice(field["values"])
            continue
        low, high = field["stops"][0], field["stops"][-1]
        value = low * (high / low) ** dice.random()
        value = round(value) if field["whole"] else value
        given[field["name"]] = dice.choice([0, -1]) if dice.random() < 0.02 else value * field["scale"]
    return given


def outcome(name, given):
    try:
        return getattr(functions, name)(**given)
    except ValueError as error:
        return str(error)


def same(here, there):
    if isinstance(here, dict):
        return here.keys() == there.keys() and all(same(here[key], there[key]) for key in here)
    if isinstance(here, (list, tuple)):
        return len(here) == len(there) and all(map(same, here, there))
    if isinstance(here, (int, float)) and isinstance(there, (int, float)):
        return math.isclose(here, there, rel_tol=1e-9, abs_tol=1e-12)
    return here == there


@needs_browser
def test_a_page_computes_what_cpython_computes(visit, pytestconfig):
    page, dice = visit("all.html"), random.Random(7)
    count = 1000 if pytestconfig.getoption("thorough") else 60  # of each calculator
    page.wait_for_function("window.ringzero")
    for name, figure in FIGURES.items():
        arguments = [draw_arguments(dice, spec_of(figure)) for _ in range(count)]
        there = page.evaluate(
            """([name, all]) => Promise.all(all.map(given => ringzero.python
                .call("ringzero.costs.page.calculators", name, given)
                .catch(error => error.type === "ValueError" ? error.message : `${error.type}: ${error.message}`)))""",
            [name, arguments],
        )
        here = [outcome(name, given) for given in arguments]
        differ = [row for row in zip(arguments, here, there, strict=True) if not same(*row[1:])]
        assert differ == [], f"{name}: {len(differ)} differ"
        assert 0.8 * count < sum(isinstance(result, dict) for result in here) < count, "some arguments are refused"


@needs_browser
def test_nothing_is_loaded_before_the_first_use_and_nothing_from_elsewhere(visit):
    page = visit("does_it_fit.html")
    page.wait_for_selector(".rz-live")
    assert not any("micropython" in url or url.startswith("blob:") for url in visit.requests)
    with page.expect_event("worker"):
        box_of(page, "does_it_fit").get_by_label("GPUs", exact=True).focus()
    assert sum("micropython.js" in url for url in visit.requests) == 1


@needs_browser
def test_the_starting_result_is_there_at_once(visit):
    page = visit("all.html")
    page.wait_for_selector(".rz-live")
    for name in NAMES:
        box = box_of(page, name)
        assert box.locator(".rz-view svg").is_visible()
        assert box.locator(".rz-view table").is_visible()
        starts = [state["says"] for state in spec_of(FIGURES[name])["states"]]
        assert box.locator(".rz-status").text_content() in starts


@needs_browser
def test_a_slider_redraws_the_plot_with_what_python_computes(visit):
    page = visit("will_it_overlap.html")
    box = box_of(page, "will_it_overlap")
    slider = box.get_by_label("network, each GPU, slider")
    before = box.locator("svg").inner_html()
    slider.focus()
    page.keyboard.press("ArrowRight")
    text = box.get_by_label("network, each GPU", exact=True)
    assert text.input_value() == "60"
    assert slider.get_attribute("aria-valuetext") == "60 GB/s"
    needed = overlapping(bandwidth=60e9, machines=8, tokens=8192)["answer"]
    when_said(page, "will_it_overlap", f"{needed:,.0f} tokens")
    assert box.locator("svg").inner_html() != before
    assert not box.locator(".rz-note").is_visible()
    text.fill("37.5")  # between two of the slider's places
    needed = overlapping(bandwidth=37.5e9, machines=8, tokens=8192)["answer"]
    when_said(page, "will_it_overlap", f"{needed:,.0f} tokens")
    assert slider.get_attribute("aria-valuetext") == "37.5 GB/s"


@needs_browser
def test_the_address_is_the_calculation(visit):
    page = visit("all.html?q=kept#rz-does_it_fit")
    box = box_of(page, "does_it_fit")
    box.get_by_label("ZeRO stage").select_option("3")
    box.get_by_label("GPUs", exact=True).fill("100")
    other = box_of(page, "what_a_run_costs")
    other.get_by_label("price of a GPU-hour", exact=True).fill("3.25")
    page.wait_for_function("location.search.includes('3.25') && location.search.includes('world_size=100')")
    when_said(page, "does_it_fit", "It fits.")
    address = urlparse(page.url)
    kept = parse_qs(address.query)
    assert (kept["does_it_fit.stage"], kept["does_it_fit.world_size"], kept["q"]) == (["3"], ["100"], ["kept"])
    assert address.fragment == "rz-does_it_fit"

    again = visit(page.url)
    for name in ("does_it_fit", "what_a_run_costs"):
        for field in box_of(page, name).locator(".rz-field :is(input, select)").all():
            label = field.get_attribute("aria-label") or field.get_attribute("name")
            twin = box_of(again, name).locator(f'[name="{label}"], [aria-label="{label}"]')
            assert twin.input_value() == field.input_value(), label
    wanted = functions.does_it_fit("GPT-3 6.7B", "A100", 3, 100, 2, 2048, "selective")["answer"]
    when_said(again, "does_it_fit", f"on one GPU: {wanted:.3g} GB")
    assert "which_all_reduce" not in again.url


@needs_browser
def test_nonsense_in_the_address_is_refused_as_in_a_field(visit):
    page = visit("all.html?does_it_fit.world_size=many&does_it_fit.gpu=H9")
    box = box_of(page, "does_it_fit")
    assert (
        "give a whole number from 1 to 16,384"
        in box.locator(".rz-field .rz-wrong").filter(has_text="GPUs").inner_text()
    )
    assert box.get_by_label("GPU", exact=True).evaluate("s => s.selectedOptions[0].text") == "A100"
    assert box.locator(".rz-view table, .rz-view svg").count() == 0


ONE_AFTER_THE_OTHER = """(field, texts) => texts.forEach(text => {
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
})"""


@needs_browser
def test_nonsense_in_a_field_shows_what_it_takes_and_no_result(visit):
    page = visit("does_it_fit.html")
    box = box_of(page, "does_it_fit")
    field, wrong = box.get_by_label("GPUs", exact=True), box.locator("#rz-does_it_fit-world_size-wrong")
    assert wrong.get_attribute("role") == "alert"
    assert wrong.get_attribute("id") in field.get_attribute("aria-describedby")
    for text in ["", "abc", "-3", "0", "2.5", "1e9", "1,000", "NaN", "Infinity", "0x10", "1 2"]:
        field.fill(text)
        assert field.get_attribute("aria-invalid") == "true", text
        assert wrong.inner_text() == "GPUs: give a whole number from 1 to 16,384, in digits: 1000 or 2.5", text
        box.get_by_label("ZeRO stage").select_option("2")  # another field does not bring a result back
        page.evaluate("ringzero.python.exec('result = 1')")  # whatever was asked before has been answered
        assert box.locator(".rz-view table, .rz-view svg").count() == 0, text
        field.fill("16")
        when_said(page, "does_it_fit", "It fits.")
    field.evaluate(ONE_AFTER_THE_OTHER, ["17", "?"])  # Python still computes 17 when the field is already wrong
    page.evaluate("ringzero.python.exec('result = 1')")
    assert box.locator(".rz-view table, .rz-view svg").count() == 0
    field.fill("16")
    when_said(page, "does_it_fit", "It fits.")
    assert field.get_attribute("aria-invalid") is None
    assert wrong.inner_text() == ""


@needs_browser
def test_what_the_formulas_refuse_stands_beside_the_field(visit):
    page = visit("from_nothing.html")
    box = box_of(page, "which_all_reduce")
    box.get_by_label("latency", exact=True).fill("0")  # the field takes it, the formula does not
    page.wait_for_function("document.querySelector('#rz-which_all_reduce-alpha-wrong').textContent")
    assert box.locator("#rz-which_all_reduce-alpha-wrong").inner_text() == "alpha is 0; give a number above 0"
    assert box.locator(".rz-view table, .rz-view svg").count() == 0
    box.get_by_label("ranks", exact=True).fill("1")  # no all-reduce, no plot
    box.get_by_label("latency", exact=True).fill("1")
    when_said(page, "which_all_reduce", "One rank has nothing to send.")


FOCUSED = """() => {
  const focused = document.activeElement;
  return focused.labels?.[0]?.textContent || focused.ariaLabel || focused.textContent;
}"""


@needs_browser
def test_a_keyboard_is_enough(visit):
    page = visit("will_it_overlap.html")
    name = "will_it_overlap"
    box = box_of(page, name)
    box.locator("select").first.focus()
    order = []
    for _ in range(13):
        order.append(page.evaluate(FOCUSED))
        page.keyboard.press("Tab")
    fields = [field["label"] for field in spec_of(FIGURES[name])["fields"]]
    tabbed = [fields[0]] + [each for label in fields[1:] for each in (label, f"{label}, slider")]
    assert order == tabbed
    for control in box.locator("input:not([type=range]), select").all():
        assert control.evaluate("c => c.labels.length") == 1
    assert box.locator(".rz-status").get_attribute("aria-live") == "polite"
    box.get_by_label("GPU", exact=True).focus()
    page.keyboard.type("B200")
    needed = overlapping("B200", machines=8, tokens=8192)["answer"]
    when_said(page, name, f"{needed:,.0f} tokens")


@needs_browser
def test_without_python_the_nearest_of_the_grid_is_shown_and_said_to_be(visit):
    page = visit("no_engine.html")
    box = box_of(page, "will_it_overlap")
    assert not box.locator(".rz-note").is_visible()
    tokens = box.get_by_label("tokens of a micro-batch", exact=True)
    tokens.fill("9000")
    note = box.locator(".rz-note")
    assert note.is_visible()
    assert note.inner_text().startswith("Python does not run here. Nearest values that this page carries. For GPU H100")
    assert "tokens of a micro-batch 8,192 tokens" in note.inner_text()
    assert box.locator("svg text").filter(has_text="8,192").count() == 1
    tokens.fill("32768")
    assert not note.is_visible()
    assert box.locator("svg text").filter(has_text="32,768").count() == 1


@needs_browser
def test_without_a_script_the_starting_view_stays(visit):
    page = visit("all.html", java_script_enabled=False)
    for name in NAMES:
        box = box_of(page, name)
        assert box.locator(".rz-view svg").is_visible()
        assert box.locator(".rz-view table").is_visible()
        assert box.locator(".rz-note").inner_text().startswith("For ")
        assert not box.locator(".rz-fields").is_visible()


@needs_browser
def test_on_paper_the_answer_stands_with_its_values(visit):
    page = visit("all.html")
    page.wait_for_selector(".rz-live")
    page.emulate_media(media="print")
    for name in NAMES:
        box = box_of(page, name)
        assert box.locator(".rz-view svg").is_visible()
        assert box.locator(".rz-note").inner_text().startswith("For ")
        assert not box.locator(".rz-fields").is_visible()


TEXTS = """() => [...document.querySelectorAll('.rz-calculator :is(svg text, th, td, p, label, button, .rz-unit)')]
  .filter(e => e.checkVisibility()).map(e => {
    const style = getComputedStyle(e);
    return { text: e.textContent.slice(0, 40), color: e.closest('svg') ? style.fill : style.color };
  })"""


def as_hex(color):
    return "#" + "".join(f"{round(float(c)):02x}" for c in re.findall(r"[\d.]+", color)[:3])


@needs_browser
@pytest.mark.parametrize(("mode", "paper"), [("light", "#ffffff"), ("dark", "#121212")])
def test_in_light_and_dark_and_on_a_telephone_it_can_be_read(visit, mode, paper):
    page = visit("all.html", color_scheme=mode, viewport={"width": 390, "height": 800})
    texts = page.evaluate(TEXTS)
    assert len(texts) > 100
    for text in texts:
        assert palette.contrast(as_hex(text["color"]), paper) >= 4.5, text
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
