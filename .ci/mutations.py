"""Break the package one place at a time; the tests that guard the place have to fail.

python .ci/mutations.py [--list] [--jobs 2] [--again] [by-hand | number or range ...]

The first mutations are formulas, broken by hand. The others are drawn: one place or a few of every module, chosen at
random with a fixed seed, are changed by a rule: another operator or comparison, another constant, a term or a negation
dropped, two arguments swapped. Results are kept in build/mutations, and a run that was stopped resumes; --again forgets
them. The last lines name the survivors and the rate. docs/testing.md says which survive and why.
"""

import argparse
import ast
import copy
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "src" / "simdims"
KEPT = REPOSITORY / "build" / "mutations"
SEED = 0
#: Folders whose modules compute what a paper rests on: two mutations of each, of all others one.
TWICE = ("consensus/", "inference/", "metrics/", "selection/", "simulate/", "solvers/")
#: Folders in which constants are the looks of a picture or of a page, and stay.
LOOKS = ("cli/", "plots/", "report/")
#: Seconds that the tests of a mutation may take beyond thrice what they take unbroken.
PATIENCE = 60
#: Compiled functions are cached by the file that calls them, and would be those of the unbroken file.
COMPILED = {"solvers/kernels.py", "solvers/accelerated.py"}

#: Module, or folder of modules -> the tests that should notice; the longest name that fits counts.
TESTS = {
    "__init__.py": "test_architecture.py",
    "_cells.py": "test_io.py test_similarity.py test_cli_discover.py",
    "_dependencies.py": "test_io.py",
    "_downloads.py": "test_datasets.py",
    "_journal.py": "test_journal.py test_faults.py",
    "_memory.py": "test_memory.py",
    "_parallel.py": "test_parallel.py test_consensus_runs.py",
    "_parameters.py": "test_bad_input.py test_junk_input.py",
    "_progress.py": "test_selection.py test_cli_terminal.py",
    "_tables.py": "test_cli.py test_associations.py test_construct.py",
    "_threads.py": "test_parallel.py test_hardening.py",
    "associations.py": "test_associations.py",
    "construct.py": "test_construct.py",
    "datasets.py": "test_datasets.py",
    "features.py": "test_features.py test_landmarks.py",
    "srf.py": "test_srf.py",
    "triplets.py": "test_triplets.py test_metrics_triplets.py",
    "cli": "test_cli.py test_cli_discover.py test_cli_tools.py",
    "cli/completion.py": "test_cli_tools.py",
    "cli/evaluate.py": "test_cli_results.py test_cli.py",
    "cli/inference.py": "test_cli_results.py test_cli.py",
    "cli/options.py": "test_cli_mistakes.py test_cli.py",
    "cli/outputs.py": "test_cli_mistakes.py test_cli.py",
    "cli/report.py": "test_cli_tools.py test_cli_mistakes.py",
    "cli/spelling.py": "test_cli_mistakes.py test_cli.py",
    "cli/steps.py": "test_cli_results.py test_cli.py",
    "cli/terminal.py": "test_cli_terminal.py",
    "consensus": "test_consensus_runs.py test_consensus_alignment.py test_consensus_reliability.py",
    "discovery": "test_discovery.py test_cli_discover.py",
    "inference": "test_inference_rsa.py test_inference_dimension.py",
    "io": "test_io.py",
    "io/exchange.py": "test_exchange.py",
    "io/raw.py": "test_cli.py test_cli_discover.py",
    "io/sniffing.py": "test_sniffing.py test_cli_discover.py",
    "metrics": "test_metrics.py test_metrics_structure.py test_metrics_readouts.py",
    "metrics/_pairs.py": "test_metrics_triplets.py test_metrics_links.py test_metrics_readouts.py",
    "metrics/ceiling.py": "test_metrics_triplets.py",
    "metrics/choices.py": "test_metrics_triplets.py",
    "metrics/links.py": "test_metrics_links.py",
    "plots": "test_plots.py",
    "report": "test_report.py",
    "selection": "test_selection.py",
    "selection/calibration.py": "test_calibration.py",
    "selection/spectrum.py": "test_spectrum.py",
    "selection/splits.py": "test_splits.py",
    "similarity": "test_similarity.py",
    "similarity/arrays.py": "test_srf.py test_consensus_runs.py",
    "similarity/new_items.py": "test_srf.py test_junk_input.py",
    "similarity/symmetry.py": "test_similarity.py test_inference_rsa.py",
    "simulate": "test_simulate.py test_simulate_designs.py",
    "solvers": "test_invariants.py test_kernels.py test_hardening.py",
    "solvers/admm.py": "test_admm.py test_invariants.py test_srf.py",
    "solvers/criterion.py": "test_criterion.py test_invariants.py",
    "solvers/start.py": "test_srf.py test_hardening.py",
}

#: Not broken: the looks of pictures, and what is tested only where PyTorch is installed.
LEFT_OUT = ("plots/_style.py", "solvers/torch.py", "solvers/listed_torch.py", "__main__.py")


class Mutation(NamedTuple):
    """What is broken: a file, a piece of it, what stands there instead, and the tests that should notice.

    `start` is where the piece begins; None if it stands there once.
    """

    what: str
    file: str
    right: str
    wrong: str
    tests: str
    start: int | None = None

    def broken(self, text: str) -> str:
        """The text of the file with the piece replaced."""
        if self.start is None:
            assert text.count(self.right) == 1, f"{self.file} does not hold {self.right!r} once"
            return text.replace(self.right, self.wrong)
        end = self.start + len(self.right)
        assert text[self.start : end] == self.right, f"{self.file} has changed"
        return text[: self.start] + self.wrong + text[end:]


BY_HAND = [
    Mutation(
        "the cubic of the scalar step loses x^2",
        "solvers/kernels.py",
        "p = curvature - omega_ii * (s_ii - squared_norm + x * x)",
        "p = curvature - omega_ii * (s_ii - squared_norm)",
        "test_kernels.py",
    ),
    Mutation(
        "listed pairs pull without their weights",
        "solvers/kernels.py",
        "pull = weights[e] * values[e]\n        if pull",
        "pull = values[e]\n        if pull",
        "test_invariants.py",
    ),
    Mutation(
        "ADMM's Z-step forgets the weight in its denominator",
        "solvers/kernels.py",
        "/ (rho + weight)",
        "/ (rho + 1.0)",
        "test_admm.py",
    ),
    Mutation(
        "leakage without the odds of the sampling",
        "selection/calibration.py",
        "odds = shares / (1 - shares)",
        "odds = shares",
        "test_calibration.py",
    ),
    Mutation(
        "the pool of pairs is not enlarged by k / (k - 1)",
        "selection/splits.py",
        "sampling * n_folds / (n_folds - 1)",
        "sampling",
        "test_splits.py",
    ),
    Mutation(
        "p-values can be zero",
        "inference/permutations.py",
        "return (1 + np.count_nonzero(null >= observed - TIE, axis=0)) / (1 + n_defined(null))",
        "return np.count_nonzero(null >= observed - TIE, axis=0) / n_defined(null)",
        "test_inference_rsa.py",
    ),
    Mutation(
        "Laplace smoothing adds one answer too few to the denominator",
        "_answers.py",
        "values /= n_judged + 2 * float(smoothing)",
        "values /= n_judged + float(smoothing)",
        "test_triplets.py",
    ),
    Mutation(
        "mutual information in natural units",
        "associations.py",
        "information = np.log2(",
        "information = np.log(",
        "test_associations.py",
    ),
    Mutation(
        "the Gaussian kernel without its 1/2",
        "features.py",
        "-0.5 / sigma**2",
        "-1.0 / sigma**2",
        "test_features.py",
    ),
    Mutation(
        "the signal-to-noise ratio as signal over noise",
        "simulate/noise.py",
        "clean.var() * (1 - snr) / snr",
        "clean.var() / snr",
        "test_simulate_designs.py",
    ),
    Mutation(
        "reliability without the Spearman-Brown correction",
        "consensus/reliability.py",
        "return 2.0 * r / (1.0 + np.abs(r))",
        "return r",
        "test_consensus_reliability.py",
    ),
    Mutation(
        "explained variance compares with zero instead of the mean",
        "metrics/variance.py",
        "spread = squares - total**2 / weight",
        "spread = squares",
        "test_metrics.py",
    ),
    Mutation(
        "the model that moves all rows simultaneously has half of W^T W",
        "solvers/accelerated.py",
        "x = 2.0 * gram[k, m]\n",
        "x = gram[k, m]\n",
        "test_kernels.py",
    ),
    Mutation(
        "a row does not see the last of those that moved before it in its block",
        "solvers/kernels.py",
        "for before in range(whole, e):",
        "for before in range(whole, e - 1):",
        "test_kernels.py",
    ),
    Mutation(
        "a sweep that raises the objective is kept",
        "solvers/loop.py",
        "if method.may_rise and not objective <= before:",
        "if method.may_rise and not objective <= 2 * before:",
        "test_invariants.py",
    ),
    Mutation(
        "a sweep makes W five percent larger than it should be",
        "solvers/sweeps.py",
        "    return change\n",
        "    W *= 1.05\n    return change\n",
        "test_invariants.py",
    ),
    Mutation(
        "the KKT residual counts slopes that lead beyond the limit of a loading",
        "solvers/criterion.py",
        "slope[unknown] = np.where(at_limit, ",
        "slope[unknown] = np.where(False, ",
        "test_hardening.py",
    ),
    Mutation(
        "all restarts begin from the same sample",
        "solvers/sample.py",
        "zlib.crc32(W[:, 0].tobytes())",
        "0",
        "test_hardening.py",
    ),
    Mutation(
        "permutations without a correlation count as not extreme",
        "inference/permutations.py",
        "return np.count_nonzero(~np.isnan(null), axis=0)",
        "return np.full(null.shape[1:], len(null))",
        "test_inference_rsa.py",
    ),
]


def drawn() -> list[Mutation]:
    """Mutations of every module, drawn with a fixed seed."""
    mutations = []
    for file in modules()[0]:
        text = (PACKAGE / file).read_text(encoding="utf-8")
        by_rule: dict[str, list[Place]] = {}
        for place in places(text):
            by_rule.setdefault(place.rule, []).append(place)
        if file.startswith(LOOKS):
            by_rule.pop("constant", None)
        drawing = random.Random(f"{SEED} {file}")
        rules = drawing.sample(sorted(by_rule), min(len(by_rule), 2 if file.startswith(TWICE) else 1))
        for start, right, wrong, _ in (drawing.choice(by_rule[rule]) for rule in rules):
            line = text.count("\n", 0, start) + 1
            shown = " ".join(right.split()), " ".join(wrong.split())
            what = f"{file}:{line}: {shown[0]} -> {shown[1]}"
            mutations.append(Mutation(what, file, right, wrong, tests_of(file), start))
    return mutations


def tests_of(file: str) -> str:
    """The tests that should notice if a module is broken."""
    return TESTS[max((name for name in TESTS if file.startswith(name)), key=len)]


def modules() -> tuple[list[str], list[str]]:
    """The modules for which tests are named above, and those for which none are."""
    files = [path.relative_to(PACKAGE).as_posix() for path in sorted(PACKAGE.rglob("*.py"))]
    files = [file for file in files if file not in LEFT_OUT]
    named = [file for file in files if file.startswith(tuple(TESTS))]
    return named, [file for file in files if file not in named]


class Place(NamedTuple):
    """Where a module can be broken: where the piece begins, the piece, what stands there instead, and by which rule."""

    start: int
    right: str
    wrong: str
    rule: str


def places(text: str) -> Iterator[Place]:
    """All places of a module, in the order of the file, with every rule that applies."""
    rows = [row.encode() for row in text.splitlines(keepends=True)]
    starts = [0]
    for row in rows:
        starts.append(starts[-1] + len(row.decode()))
    for node in computing(ast.parse(text)):
        if node.lineno != node.end_lineno:
            continue
        row = rows[node.lineno - 1]
        start = starts[node.lineno - 1] + len(row[: node.col_offset].decode())
        piece = row[node.col_offset : node.end_col_offset].decode()
        for rule, changed in changes(node):
            wrong = ast.unparse(changed)
            yield Place(start, piece, wrong if is_atom(changed) else f"({wrong})", rule)


def is_atom(node: ast.expr) -> bool:
    """Whether it needs no parentheses wherever it stands."""
    return isinstance(node, ast.Name | ast.Call | ast.Subscript | ast.Attribute) or (
        isinstance(node, ast.Constant) and not str(node.value).startswith("-")
    )


def computing(node: ast.AST) -> Iterator[ast.expr]:
    """Every expression but those of types, words, errors, warnings, decorators and defaults of keywords."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "defaults", "kw_defaults", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or is_words(child):
                continue
            if isinstance(child, ast.expr):
                yield child
            yield from computing(child)


def is_words(node: ast.AST) -> bool:
    """Whether it is only about words and types."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
        return node.test.id == "TYPE_CHECKING"
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        return called.startswith(("warnings.", "logger.", "log.", "cast", "TypeVar")) or called.endswith("add_argument")
    return isinstance(node, ast.BinOp) and any(
        isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        for part in ast.walk(node)
    )


OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Add,
    ast.FloorDiv: ast.Div, ast.Mod: ast.FloorDiv, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


def changes(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """What may stand in the place of an expression, and the rule that it follows."""
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OPERATORS:
        yield "operator", with_field(node, op=OPERATORS[type(node.op)]())
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        yield "dropped", node.left  # a term or a factor
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
        yield "comparison", with_field(node, ops=[OPERATORS[type(node.ops[0])](), *node.ops[1:]])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield "negation", node.operand
    if isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
        value = node.value
        changed = (not value) if type(value) is bool else value + 1 if type(value) is int else (2 * value or 1.0)
        yield "constant", ast.Constant(changed)
    if isinstance(node, ast.Call) and len(node.args) >= 2 and ast.unparse(node.func) not in ("isinstance", "zip"):
        first, second, *others = node.args
        if not any(isinstance(part, ast.Starred | ast.Constant) for part in (first, second)):
            yield "swapped", with_field(node, args=[second, first, *others])


def with_field(node: ast.expr, **fields: object) -> ast.expr:
    """A copy of a node with other fields."""
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def main() -> None:
    """Break and test those that are asked for, or all."""
    mutations = [*BY_HAND, *drawn()]
    options = asked_for(len(mutations))
    if options.list:
        for number in options.chosen:
            sys.stdout.write(f"{number:3d}. {mutations[number - 1].what}\n")
        return
    KEPT.mkdir(parents=True, exist_ok=True)
    copies: Queue[Copy] = Queue()
    for name in range(options.jobs):
        copies.put(Copy(KEPT / f"copy{name}"))
    known = {} if options.again else read_results()

    def judge(number: int) -> tuple[int, str]:
        mutation = mutations[number - 1]
        key = key_of(mutation)
        said = known.get(key)
        if said is None:
            place = copies.get()
            try:
                said = place.judged(mutation)
            finally:
                copies.put(place)
            with (KEPT / "results.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "number": number, "what": mutation.what, "said": said}) + "\n")
        sys.stdout.write(f"{number:3d}. {mutation.what}: {said}\n")
        sys.stdout.flush()
        return number, said

    with ThreadPoolExecutor(options.jobs) as pool:
        found = dict(pool.map(judge, options.chosen))
    conclude(mutations, found)


def asked_for(n_mutations: int) -> argparse.Namespace:
    """The options, `chosen` being the numbers."""
    parser = argparse.ArgumentParser(description="Break the package one place at a time; tests have to fail.")
    parser.add_argument("numbers", nargs="*", help="numbers, ranges as in 15-40, or by-hand (default: all)")
    parser.add_argument("--list", action="store_true", help="list the mutations and end")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time (default: all cores)")
    parser.add_argument("--again", action="store_true", help="forget the results of earlier runs")
    options = parser.parse_args()
    options.chosen = []
    for words in options.numbers or [f"1-{n_mutations}"]:
        first, _, last = (f"1-{len(BY_HAND)}" if words == "by-hand" else words).partition("-")
        options.chosen += range(int(first), int(last or first) + 1)
    return options


def conclude(mutations: list[Mutation], found: dict[int, str]) -> None:
    """Name the survivors and the rate; end with status 1 if there are any."""
    if modules()[1]:
        sys.stdout.write(f"\nNot broken, because TESTS names no tests for them: {', '.join(modules()[1])}\n")
    survivors = [number for number, said in found.items() if said.startswith(("survived", "cannot"))]
    killed = len(found) - len(survivors)
    sys.stdout.write(f"\n{killed} of {len(found)} mutations were noticed ({killed / max(len(found), 1):.0%}).\n")
    if survivors:
        names = "\n".join(f"{number:3d}. {mutations[number - 1].what}: {found[number]}" for number in survivors)
        sys.exit(f"Not noticed:\n{names}")


def key_of(mutation: Mutation) -> str:
    """What a result depends on: the mutation, the package and the tests that judge it."""
    read = [PACKAGE / mutation.file, *(REPOSITORY / "tests" / name for name in mutation.tests.split())]
    digest = hashlib.sha256(repr(mutation).encode())
    for path in read:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def read_results() -> dict[str, str]:
    """What earlier runs found, by key."""
    path = KEPT / "results.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {result["key"]: result["said"] for result in map(json.loads, lines)}


class Copy:
    """A copy of the package and its tests, in which one file at a time is broken.

    It stays where it is, and files keep their dates, so that what is compiled from unbroken files is compiled once.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unbroken: dict[str, float | None] = {}
        for part in ("src", "tests"):
            shutil.rmtree(folder / part, ignore_errors=True)
            shutil.copytree(REPOSITORY / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "conftest.py", "README.md"):
            shutil.copy2(REPOSITORY / name, folder)
        if not (folder / "docs").exists():
            (folder / "docs").symlink_to(REPOSITORY / "docs")

    def judged(self, mutation: Mutation) -> str:
        """Which test fails where the package is broken and passes where it is not, or that none does."""
        seconds = self.seconds_unbroken(mutation.tests)
        if seconds is None:
            return f"cannot be judged: {mutation.tests} fails without it"
        file = self.folder / "src" / "simdims" / mutation.file
        dates = file.stat()
        text = file.read_text(encoding="utf-8")
        try:
            file.write_text(mutation.broken(text), encoding="utf-8")
            status, said = self.tested(mutation.tests, 3 * seconds + PATIENCE, afresh=mutation.file in COMPILED)
        finally:
            file.write_text(text, encoding="utf-8")
            os.utime(file, ns=(dates.st_atime_ns, dates.st_mtime_ns))
        if status is None:
            return "the tests do not end"
        failed = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
        if status in (1, 2, 3, 4) and failed:  # failed, or could not even be collected
            return failed[0].split(" - ")[0].removeprefix("FAILED tests/")
        return "survived" if status == 0 else f"cannot be judged: status {status}"

    def seconds_unbroken(self, tests: str) -> float | None:
        """How long the tests take on the unbroken package; None if they fail."""
        if tests not in self.unbroken:
            began = time.monotonic()
            status, _ = self.tested(tests, 3600)
            self.unbroken[tests] = time.monotonic() - began if status == 0 else None
        return self.unbroken[tests]

    def tested(self, tests: str, limit: float, afresh: bool = False) -> tuple[int | None, str]:
        """The status of the tests, None if they do not end in time, and what they say."""
        cache = self.folder / ("numba-broken" if afresh else "numba")
        if afresh:
            shutil.rmtree(cache, ignore_errors=True)
        data = os.environ.get("SIMDIMS_DATA", str(REPOSITORY.parent / "shared" / "data"))
        environment = {
            **os.environ, "PYTHONPATH": str(self.folder / "src"), "NUMBA_CACHE_DIR": str(cache), "SIMDIMS_DATA": data,
            "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "-p", "no:cacheprovider"]
        command += [f"tests/{name}" for name in tests.split()]
        try:
            run = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return None, ""
        return run.returncode, run.stdout


if __name__ == "__main__":
    main()
