"""Trains MNIST with seeds 0 to 9 and prints accuracies, step times, and whether equal seeds gave equal losses.

    python tools/mnist_seeds.py --backend cuda [--seeds 10] [further arguments of `gradexamples mnist`]

The limits are those of the project: mean test accuracy at least 98.6 %, each at least 98.2 %.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def train(seed: int, folder: Path, arguments: list[str]) -> dict[str, object]:
    """One run of the command; its JSON record."""
    record = folder / f"{seed}.json"
    command = [sys.executable, "-m", "gradexamples", "mnist", "--seed", str(seed), "--json", str(record), *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    result: dict[str, object] = json.loads(record.read_text())
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    options, arguments = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as name:
        records = [train(seed, Path(name), arguments) for seed in range(options.seeds)]
        again = train(0, Path(name), arguments)
    accuracies = [float(str(record["test_accuracy"])) for record in records]
    for seed, record in enumerate(records):
        print(f"seed {seed}: {record['test_accuracy']:.2f} %, {record['step_microseconds']:.1f} us a step")
    repeats = again["losses"] == records[0]["losses"]
    mean, least = statistics.mean(accuracies), min(accuracies)
    print(f"mean {mean:.2f} %, least {least:.2f} %; seed 0 twice: {'bit-identical' if repeats else 'DIFFERENT'} losses")
    return 0 if mean >= 98.6 and least >= 98.2 and repeats else 1


if __name__ == "__main__":
    sys.exit(main())
