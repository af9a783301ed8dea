"""The benchmarks run and write what they say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rivals", "scale", "small"])
def test_a_quick_run_prints_tables_and_writes_numbers(name, tmp_path):
    out = tmp_path / "numbers.json"
    command = [sys.executable, BENCHMARKS / f"bench_{name}.py", "--quick", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("|---|") >= 2
    assert json.loads(out.read_text())["machine"]["cores"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "consensus --out {}/numbers.json",
        "construct --out {}/numbers.json",
        "encoder --repeats 1",
        "fit --out {}/numbers.json",
        "inference --out {}/numbers.json",
        "joint --out {}/numbers.json",
        "matching",
        "nuisance --out {}/numbers.json",
        "power --out {}/numbers.json",
        "scale --workers 2 --out {}/numbers.json",
        "selection speed --out {}",
        "selection admm --out {}",
        "penalty simulated --out {}",
    ],
)
def test_the_others_run_too(command, tmp_path):
    name, *arguments = command.format(tmp_path).split()
    script = [sys.executable, BENCHMARKS / f"bench_{name}.py", *arguments, "--quick"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert list(tmp_path.glob("*.json")) or "--out" not in command
