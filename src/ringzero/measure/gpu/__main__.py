"""``python -m ringzero.measure.gpu``: run the parts on this machine's GPU, and write ``book/gpu/DATE_CARD.json``."""

import argparse
import json
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from ringzero.measure.gpu import runner
from ringzero.measure.gpu.parts import PARTS

BOOK = Path(__file__).resolve().parents[4] / "book"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0; 1 when a part failed; 2 without a GPU or for arguments that cannot be."""
    parser = argparse.ArgumentParser("python -m ringzero.measure.gpu", description="What only a GPU can show.")
    names = [part.name for part in PARTS]
    parser.add_argument("--only", metavar="A,B", type=_known, default=names, help="of: " + ", ".join(names))
    parser.add_argument("--skip", metavar="A,B", type=_known, default=[])
    parser.add_argument("--minutes", type=float, default=8.0, help="for all parts together (default: 8)")
    parser.add_argument("--to", metavar="FILE", type=Path, help="the record (default: a new file in book/gpu)")
    options = parser.parse_args(arguments)
    card = read_card()
    if "missing" in card:
        print(f"make gpu: {card['missing']}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, _stop)
    now = datetime.now(UTC)
    path = options.to or default_path(card["card"], now)
    record = {**card, "date": f"{now:%Y-%m-%d}"}
    print(f"{card['card']}, driver {card['driver']}, torch {card['torch']}: at most {options.minutes:g} minutes")
    chosen = [name for name in options.only if name not in options.skip]
    try:
        runner.run(PARTS, chosen, record, path, 60 * options.minutes)
    except KeyboardInterrupt:
        print(f"stopped; what was done is in {path}", file=sys.stderr)
        return 130
    print(f"written: {path}")
    return int(any(part["status"] == "failed" for part in record["parts"].values()))


def read_card() -> dict[str, Any]:
    """``card.read()``, from a process of its own."""
    ask = [sys.executable, "-m", "ringzero.measure.gpu.card"]
    done = subprocess.run(ask, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        return {"missing": f"it cannot ask torch for a GPU: {said[0]}"}
    return json.loads(done.stdout)


def default_path(card: str, now: datetime) -> Path:
    """A file of its own for each run, so that none replaces another; in a checkout, where pages find it."""
    name = f"{now:%Y-%m-%dT%H%M%S}_{re.sub(r'[^a-z0-9]+', '-', card.lower()).strip('-')}.json"
    return (BOOK / "gpu" if (BOOK / "_toc.yml").is_file() else Path()) / name


def _known(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in [part.name for part in PARTS]:
            raise argparse.ArgumentTypeError(
                f"no part is called {name!r}; there are {', '.join(p.name for p in PARTS)}"
            )
    return names


def _stop(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
