"""`python -m gradcore`: the table, the same for programs, exit codes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradcore.__main__ import format_table, main
from gradcore.backend.table import BackendRow


def run(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command as a user types it, with `folder` as one more place of installed distributions."""
    path = [str(folder)] if folder else []
    path += [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    command = [sys.executable, "-m", "gradcore", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def broken(folder: Path) -> Path:
    (folder / "dist_bad-1.0.dist-info").mkdir()
    (folder / "dist_bad-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: dist-bad\nVersion: 1.0\n")
    (folder / "dist_bad-1.0.dist-info" / "entry_points.txt").write_text("[gradcore.backends]\nbad = plugin_of_bad\n")
    (folder / "plugin_of_bad.py").write_text("raise ImportError('libbad.so: not found')\n")
    return folder


def test_table() -> None:
    rows = [
        BackendRow("cuda", 30, False, "no NVIDIA driver", (), "gradcuda 0.1.0"),
        BackendRow("numpy", 10, True, "", ("Conv2dOps", "Pool2dOps"), "built in"),
    ]
    assert format_table(rows).splitlines() == [
        "backend  priority  distribution    capabilities         status",
        "cuda     30        gradcuda 0.1.0  -                    not available: no NVIDIA driver",
        "numpy    10        built in        Conv2dOps Pool2dOps  available",
    ]


def test_lists_with_a_broken_neighbour(tmp_path: Path) -> None:
    done = run(folder=broken(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    [line] = [line for line in done.stdout.splitlines() if line.startswith("bad ")]
    reason = "not available: broken: ImportError: libbad.so: not found"
    assert re.split(r" {2,}", line) == ["bad", "0", "dist-bad 1.0", "-", reason]
    assert any(line.startswith("numpy ") and line.endswith("available") for line in done.stdout.splitlines())


def test_strict_shows_the_traceback(tmp_path: Path) -> None:
    done = run("--strict", folder=broken(tmp_path))
    assert done.returncode == 1
    assert "plugin_of_bad.py" in done.stderr
    assert done.stderr.endswith("ImportError: libbad.so: not found\n")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["numpy"]["available"] is True
    assert rows["numpy"]["capabilities"] == ["Conv2dOps", "Pool2dOps"]


@pytest.mark.parametrize("wrong", ["--backend", "ref", "-x"])
def test_unknown_arguments(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([wrong])
    assert caught.value.code == 2
    assert "usage: python -m gradcore" in capsys.readouterr().err
