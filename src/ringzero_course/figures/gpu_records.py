"""What ``make gpu`` recorded on somebody's GPU, as tables for a page, under the name of the card and the date.

Records are the files of ``book/gpu``, one for each run of ``measure/gpu``; the newest that has a part is shown.
"""

import glob
import json
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ringzero.costs.page import hardware
from ringzero.drawing.figure import Figure, table

Row = dict[str, Any]
NONE = "No GPU's record of this is in the repository; on a machine with a GPU, make gpu makes one."
LONGEST = 44  # letters of an operator's name


def on_a_gpu(part: str, records: str) -> Figure:
    """The newest of ``records``, a pattern of files, that has a part such as "copies"; a sentence where none has.

    Raises KeyError for a part that no page can show.
    """
    draw = SHOWN[part]
    for path in sorted(glob.glob(records), reverse=True):  # their names begin with the date
        record = json.loads(Path(path).read_text())
        if record["parts"].get(part, {}).get("status") == "ok":
            return draw(record["parts"][part]["rows"], record)
    return Figure(f"<p>{escape(NONE)}</p>", NONE)


def _caption(record: Row, says: str = "") -> str:
    of = f"{record['card']}, driver {record['driver']}, torch {record['torch']}: recorded on {record['date']}."
    return f"{of} {says}".strip()


def _copies(rows: Sequence[Row], record: Row) -> Figure:
    cells = []
    found = {(row["bytes"], row["memory"], row["way"]): row for row in rows if row["asynchronous"]}
    for size, memory in dict.fromkeys((row["bytes"], row["memory"]) for row in rows):
        up, down = (found[size, memory, way] for way in ("to the device", "to the host"))
        rates = [f"{row['bytes_per_second'] / 1e9:.2f}" for row in (up, down)]
        cells.append((f"{_size(size)}, {memory}", *rates, _us(up["returned_seconds"]), _us(up["seconds"])))
    both = [row for row in rows if row["way"] == "both ways at once"]
    says = "".join(f"Both ways at once: {row['bytes_per_second'] / 1e9:.1f} GB/s together. " for row in both)
    try:
        generation = hardware.gpu(record["card"])["pcie_generation"]
        says += f"The link's best, by PCIe {generation}: {hardware.pcie(generation):.0f} GB/s each way."
    except ValueError:
        pass  # a card that the table does not have
    head = ("bytes, host memory", "to the GPU (GB/s)", "to the host (GB/s)", "call returned (µs)", "bytes there (µs)")
    return table(cells, head, _caption(record, f"Calls with non_blocking=True; times of the way to the GPU. {says}"))


def _offload(rows: Sequence[Row], record: Row) -> Figure:
    cells = [
        (
            f"{row['precision']}, {row['parameters'] / 1e6:.0f} million parameters",
            *(_ms(row[f"{name}_seconds"]) for name in ("copies", "adam", "predicted", "step")),
            f"{row['step_seconds'] / row['predicted_seconds']:.2f}",
            _ms(row["step_on_device_seconds"]),
        )
        for row in rows
    ]
    head = ("ms", "copies", "AdamW", "predicted", "measured", "measured / predicted", "states on the GPU")
    shown = table(cells, head, _caption(record, "The update of a model whose states are on the host, layer by layer."))
    return _with_why(
        shown,
        "The copies and the AdamW were timed alone. In the step they run at once and share the host's memory, AdamW is "
        "called once for each layer, and the first and the last layer have nothing beside them. In bf16 the CPU rounds "
        "each parameter before it travels, which is in neither of the two.",
    )


def _memory(rows: Sequence[Row], record: Row) -> Figure:
    names = ("predicted_bytes", "counted_bytes", "requested_bytes", "allocated_bytes")
    cells = [(f"{row['what']}, {row['precision']}", *(_grouped(row[name]) for name in names)) for row in rows]
    head = ("bytes", "formula", "counted in tensors", "asked of the allocator", "given by it")
    says = "Model states on one rank. The allocator gives blocks of 512 bytes; the last row is max_memory_allocated."
    return table(cells, head, _caption(record, says))


def _clocks(rows: Sequence[Row], record: Row) -> Figure:
    names = ("host_seconds", "synchronized_seconds", "event_seconds")
    cells = [
        (f"{row['size']:,} × {row['size']:,}", *(_us(row[name]) for name in names))
        for row in rows
        if row["what"] == "product"
    ]
    lines = "; ".join(f"{r['what']}: {_ms(r['host_seconds'])} ms" for r in rows if r["what"] != "product")
    says = f"Products of two bf16 matrices. Then line by line by the host's clock, {lines}."
    return table(cells, ("µs", "host", "host, synchronized", "events"), _caption(record, says))


def _products(rows: Sequence[Row], record: Row) -> Figure:
    types = list(dict.fromkeys(row["type"] for row in rows))
    shapes = dict.fromkeys((row["tokens"], row["inputs"], row["outputs"]) for row in rows)
    found = {(row["type"], row["tokens"], row["inputs"], row["outputs"]): row for row in rows}
    cells = [
        (" × ".join(f"{side:,}" for side in shape), *(_rate(found[kind, *shape]) for kind in types)) for shape in shapes
    ]
    says = "TFLOP/s; in brackets the part of the card's dense peak, where the table of chapter 1 has it."
    return table(cells, ("tokens × inputs × outputs", *types), _caption(record, says))


def _steps(rows: Sequence[Row], record: Row) -> Figure:
    wrapped = {"ours": "ours", "torch": "torch's DDP", "alone": "no wrapping"}
    cells = [
        (
            f"{row['model']}: {wrapped[row['wrapping']]}",
            _ms(row["host_seconds"]),
            _ms(row["seconds"]),
            f"{row['ratio']:.2f}",
        )
        for row in rows
    ]
    head = ("forward and backward pass", "host (ms)", "GPU done (ms)", "torch's time over this")
    return table(cells, head, _caption(record, "One rank on NCCL, medians, taken in turns."))


def _profile(rows: Sequence[Row], record: Row) -> Figure:
    chain = [
        (
            "\u2007\u2007" * row["depth"] + _short(row["name"]),
            row["where"],
            f"{row['starts_us']:.1f}",
            f"{row['takes_us']:.1f}",
        )
        for row in rows
        if row["what"] == "chain"
    ]
    operators = [
        (
            _short(row["name"]),
            row["calls"],
            f"{row['self_device_us'] / row['calls']:.1f}",
            _grouped(row["device_bytes"]),
        )
        for row in rows
        if row["what"] == "operator" and row["self_device_us"] > 0
    ]
    first = table(chain, ("call", "where", "starts (µs)", "takes (µs)"), "From the call to the kernel.")
    head = ("by GPU time", "calls", "GPU, µs a call", "GPU memory (bytes)")
    second = table(operators, head, _caption(record))
    return Figure(first.html + second.html, f"{first.alt}; {second.alt}")


SHOWN: dict[str, Callable[[Sequence[Row], Row], Figure]] = {
    "copies": _copies,
    "offload": _offload,
    "memory": _memory,
    "clocks": _clocks,
    "products": _products,
    "ddp": _steps,
    "layer_norm": _profile,
    "kernel": _profile,
}


def _with_why(shown: Figure, why: str) -> Figure:
    """The paragraph that pages have after a table whose predictions may miss."""
    title = '<p class="admonition-title">Why the prediction misses</p>'
    return Figure(f'{shown.html}<div class="admonition why">{title}<p>{escape(why)}</p></div>', f"{shown.alt}. {why}")


def _size(nbytes: int) -> str:
    return f"{nbytes // 2**20} MiB" if nbytes >= 2**20 else f"{nbytes // 2**10} KiB"


def _us(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds * 1e6:,.1f}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.2f}"


def _grouped(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _rate(row: Row) -> str:
    of_peak = "" if row["of_peak"] is None else f" ({row['of_peak']:.0%})"
    return f"{row['flops'] / 1e12:,.2f}{of_peak}"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
