"""What a page computes: ``ringzero.costs.page`` in MicroPython gives what it gives here, over random inputs.

Every public function and constant of every module is compared. The inputs of a function follow from the names of its
parameters (``INPUTS``); a name that is not listed there fails the test.
"""

import ast
import importlib
import inspect
import math
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ringzero.costs import page
from ringzero.costs.page import alpha_beta, calculators, coefficients, hardware, memory

FOLDER = Path(page.__file__).parent
MICROPYTHON = Path(__file__).parents[2] / "book" / "_vendor" / "micropython" / "micropython.mjs"
MODULES = {
    path.stem: importlib.import_module(f"ringzero.costs.page.{path.stem}") for path in sorted(FOLDER.glob("[!_]*.py"))
}
CALLS = 60  # of each function

RUN = """
import fs from "node:fs";
const [micropython, folder, script] = process.argv.slice(2);
const {loadMicroPython} = await import(micropython);
const mp = await loadMicroPython({heapsize: 32 << 20});
for (const place of ["/lib", "/lib/ringzero", "/lib/ringzero/costs", "/lib/ringzero/costs/page"]) mp.FS.mkdir(place);
for (const room of ["", "costs/"]) mp.FS.writeFile(`/lib/ringzero/${room}__init__.py`, "");
for (const file of fs.readdirSync(folder).filter(name => name.endsWith(".py")))
    mp.FS.writeFile("/lib/ringzero/costs/page/" + file, fs.readFileSync(folder + "/" + file));
mp.runPython(fs.readFileSync(script, "utf8"));
"""


def plain(value):
    """A result as numbers, text and tuples: a dictionary in the order of its keys, a function as a word."""
    if callable(value):
        return "a function"
    if isinstance(value, dict):
        return tuple([(key, plain(value[key])) for key in sorted(value)])
    if isinstance(value, (list, tuple)):
        return tuple([plain(part) for part in value])
    return value


def outcome(expression, names):
    """What the expression gives, or the error that it raises, with its text where the text is ours."""
    try:
        return plain(eval(expression, names))
    except Exception as error:
        return (type(error).__name__, str(error) if isinstance(error, ValueError) else "")


def keys(pairs):
    return [key for key, _ in pairs] + ["unknown"]


def count(dice):
    """Mostly a sensible whole number; now and then 0 or below, for the errors."""
    return dice.choice([dice.randint(1, 12), 2 ** dice.randint(0, 10), dice.randint(-2, 200)])


def amount(dice):
    return dice.choice([dice.uniform(0, 10), dice.uniform(0, 1e12), 10.0 ** dice.randint(-9, 12), dice.randint(-1, 9)])


def one_of(*values):
    return lambda dice: dice.choice(values)


BY_NAME = ("coefficients.ring_broadcast", "coefficients.double_binary_tree_all_reduce")  # what best_chunks is given
COUNTS = [
    "batch",
    "chunks",
    "count",
    "gpus",
    "gpus_per_node",
    "heads",
    "hidden",
    "kv_heads",
    "k",
    "layers",
    "m",
    "micro_batches",
    "n",
    "nodes",
    "positions",
    "sequence",
    "tensor_parallel",
    "tensors",
    "tokens",
    "vocab",
    "world_size",
    "ffn",
    "lanes",
    "machines",
    "ranks_per_node",
]
AMOUNTS = [
    "across_bandwidth",
    "alpha",
    "bandwidth",
    "batch_tokens",
    "beta",
    "bytes_per_element",
    "dollars_per_gpu_hour",
    "elapsed",
    "flops",
    "flops_per_token",
    "gamma",
    "inside",
    "inside_bandwidth",
    "largest_layer_params",
    "mask_bytes",
    "memory_bandwidth",
    "memory_bytes",
    "params",
    "peak_flops",
    "piece",
    "port",
    "seconds",
    "size",
    "tokens_per_second",
]
FLAGS = [
    "causal",
    "concurrent",
    "dropout",
    "flash_attention",
    "fp32_gradient_accumulation",
    "gated",
    "mixed_precision",
    "sequence_parallel",
    "tied_embeddings",
]
INPUTS = {
    **dict.fromkeys(COUNTS, count),
    **dict.fromkeys(AMOUNTS, amount),
    **dict.fromkeys(FLAGS, one_of(True, False)),
    "heads": one_of(0, 1, 2, 4, 8),
    "kv_heads": one_of(1, 2, 3, 4),
    "stage": one_of(-1, 0, 1, 2, 3),
    "optimizer": one_of(*keys(memory.FP32_NUMBERS)),
    "recomputation": one_of("none", "selective", "full", "unknown"),
    "collective": one_of(*keys(alpha_beta.BUS_BANDWIDTH_FACTORS)),
    "generation": one_of(*keys(hardware.PCIE_GB_PER_S), *keys(hardware.INFINIBAND_GB_PER_S)),
    "each": lambda dice: tuple(dice.randint(0, 16) for _ in range(3)),
    "coefficients": lambda dice: (dice.randint(1, 99), dice.uniform(0.1, 9), dice.uniform(0, 9)),
    "sizes": lambda dice: [2 ** dice.randint(1, 26) for _ in range(4)],
    "times": lambda dice: [dice.uniform(1e-5, 1) for _ in range(4)],
    "name": one_of(*keys(hardware.GPUS), *keys(hardware.NODES), "NVIDIA H100 SXM5 80GB", "h200"),
    "what": one_of("what"),
    "pairs": one_of((("a", 1), ("b", 2)), (("unknown", 3),)),
    "algorithm": one_of(*BY_NAME),
    "gpu": one_of(*keys(hardware.GPUS)),
    "model": one_of(*keys(calculators.MODELS)),
    "reached": lambda dice: dice.uniform(-0.1, 1.2),
    "mfu": lambda dice: dice.uniform(-0.1, 1.2),
    "throughput.gpus": one_of(0, 1, 64, 720, 10000),
    "throughput.heads": one_of(0, 1, 2),
    "values": lambda dice: {name: amount(dice) for name in "zyxabc"},
}


def calls(dice):
    """Expressions: each constant, each entry of the table, and random calls of each function."""
    for name, module in MODULES.items():
        for public, value in vars(module).items():
            if public.startswith("_") or getattr(value, "__module__", module.__name__) != module.__name__:
                continue
            if inspect.isfunction(value):
                yield from (f"{name}.{public}({arguments(name, value, dice)})" for _ in range(CALLS))
            elif not inspect.ismodule(value):
                yield f"{name}.{public}"
    for collective, named in coefficients.COEFFICIENTS.items():
        yield from (f"coefficients.COEFFICIENTS[{collective!r}][{name!r}](8)" for name in named)


def arguments(module, function, dice):
    """All that must be given and some of what may be. A name may stand for something else in one module."""
    inputs = INPUTS | {name.split(".")[1]: make for name, make in INPUTS.items() if name.startswith(f"{module}.")}
    given = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            given.append(f"**{inputs[parameter.name](dice)!r}")
        elif parameter.default is parameter.empty or dice.random() < 0.5:
            made = inputs[parameter.name](dice)
            given.append(f"{parameter.name}={made if made in BY_NAME else repr(made)}")
    return ", ".join(given)


def same(here, there):
    """Equal, numbers within rounding: MicroPython divides large whole numbers as floats."""
    if isinstance(here, tuple):
        return isinstance(there, tuple) and len(here) == len(there) and all(map(same, here, there))
    if isinstance(here, float) and isinstance(there, float):
        return math.isclose(here, there, rel_tol=1e-12)
    if isinstance(here, str) and isinstance(there, str):  # its last digit may differ where it writes a number
        return rounded(here) == rounded(there)
    return type(here) is type(there) and here == there


def rounded(text):
    return re.sub(r"\d+\.\d+(e[+-]\d+)?", lambda number: f"{float(number[0]):.12g}", text)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node on the PATH (apt install nodejs)")
def test_costs_in_micropython_are_those_here(tmp_path):
    expressions = list(calls(random.Random(20)))
    ours = (inspect.getsource(function) for function in (plain, outcome))
    lines = [
        *(f"import ringzero.costs.page.{name} as {name}" for name in MODULES),
        *ours,
        *(f"print(repr(outcome({expression!r}, globals())))" for expression in expressions),
    ]
    (tmp_path / "script.py").write_text("\n".join(lines))
    (tmp_path / "run.mjs").write_text(RUN)
    command = ["node", tmp_path / "run.mjs", MICROPYTHON, FOLDER, tmp_path / "script.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    there = [ast.literal_eval(line) for line in done.stdout.splitlines()]
    here = [outcome(expression, dict(MODULES)) for expression in expressions]
    assert len(there) == len(here)
    differ = [row for row in zip(expressions, here, there, strict=True) if not same(*row[1:])]
    assert differ == [], f"{len(differ)} of {len(here)} differ"
    raised = sum(isinstance(value, tuple) and value[:1] == ("ValueError",) for value in here)
    assert 0.1 < raised / len(here) < 0.6, "both answers and refusals are compared"
