"""`python -m gradcore` lists the backends: which can run here, which cannot and why, and who brought them.

`--json` prints the same rows for programs; `--strict` raises the first broken plugin's own error, for its author.

Next: backend/registry.py.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict

from gradcore.backend.registry import list_backends
from gradcore.backend.table import BackendRow, BackendWarning


def format_table(rows: Sequence[BackendRow]) -> str:
    """The rows as aligned columns of plain text, the status last because it may be long."""
    cells = [("backend", "priority", "distribution", "capabilities", "status")]
    for row in rows:
        status = "available" if row.available else f"not available: {row.reason}"
        capabilities = " ".join(row.capabilities) or "-"
        cells.append((row.name, str(row.priority), row.distribution, capabilities, status))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)
    return "\n".join(line.rstrip() for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m gradcore", description="List the installed backends.")
    parser.add_argument("--json", action="store_true", help="print the rows as a JSON list")
    parser.add_argument("--strict", action="store_true", help="raise the error of a broken plugin, with its traceback")
    options = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BackendWarning)  # the table says the same
        rows = list_backends(strict=options.strict)
    print(json.dumps([asdict(row) for row in rows]) if options.json else format_table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
