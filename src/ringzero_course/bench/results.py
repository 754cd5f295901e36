"""The rows that every benchmark makes, prints and writes."""

import json
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]  # name, metric, ours, peer, peer_name, ratio, unit: ready for JSON


def row(
    name: str,
    metric: str,
    ours: float,
    peer: float | None,
    peer_name: str | None,
    unit: str,
    ratio: float | None = None,
) -> Row:
    """One comparison. ``ratio`` above 1 means ours is better; by default ``peer / ours``, as for times.

    ``peer``, ``peer_name`` and ``ratio`` are None where nothing comparable exists.
    """
    if ratio is None and peer is not None:
        ratio = peer / ours
    values = {"ours": ours, "peer": peer, "peer_name": peer_name, "ratio": ratio, "unit": unit}
    return {"name": name, "metric": metric, **values}


def write(rows: Sequence[Row], json_file: str | None) -> None:
    """Write ``rows`` as JSON to ``json_file``; nothing when no file was asked for."""
    if json_file:
        with open(json_file, "w") as file:
            json.dump(rows, file, indent=1)
