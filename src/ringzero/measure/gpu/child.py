"""The process of one part: ``python -m ringzero.measure.gpu.child MODULE:FUNCTION FILE DEVICE``.

Each row is a line of FILE as soon as it is there. The last line says how it ended: "ok", "skipped" or "failed".
"""

import importlib
import json
import sys
import traceback

from ringzero import processes
from ringzero.measure.gpu.parts import Skip


def run(rows: str, file: str, device: str) -> None:
    """Write the rows of "module:function" to ``file``, and how it ended."""
    module, function = rows.split(":")
    with open(file, "w") as out:

        def write(kind: str, value: object) -> None:
            out.write(json.dumps([kind, value], allow_nan=False) + "\n")
            out.flush()

        try:
            for row in getattr(importlib.import_module(module), function)(device):
                write("row", row)
        except Skip as why:
            write("skipped", str(why))
        except Exception as error:
            traceback.print_exc()
            write("failed", f"{type(error).__name__}: {error}")
        else:
            write("ok", None)


if __name__ == "__main__":
    processes.die_with_parent()
    run(*sys.argv[1:])
