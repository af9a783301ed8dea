"""What the machine has left, and the sentence where that is too little."""

import subprocess
import sys

import joblib
import numpy as np
import pytest
from helpers import traced_memory

from simdims import (
    SRF,
    Similarity,
    _memory,
    _parallel,
    as_similarity,
    fit_consensus,
    from_features,
    rsa_test,
    select_rank,
    simulate,
)


def test_require_says_what_how_much_and_the_ways_out(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 3 * 2**30)
    _memory.require(3 * 2**30, "A copy", "use less")
    with pytest.raises(MemoryError) as caught:
        _memory.require(5 * 2**30, "A copy", "use less")
    assert str(caught.value).startswith("A copy would need 5.0 GiB of memory, but this machine has 3.0 GiB")
    assert "use less" in str(caught.value)


def test_nothing_is_refused_where_memory_is_unknown(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: None)
    _memory.require(2**80, "A copy", "use less")


def fake_machine(root, files):
    for name, text in {"proc/meminfo": "MemTotal: 900 kB\nMemAvailable:     500 kB\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def group_files(folder, version, limit, used, cached):
    names = {
        1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        2: ("memory.max", "memory.current", "inactive_file"),
    }[version]
    return {
        f"{folder}/{names[0]}": f"{limit}\n",
        f"{folder}/{names[1]}": f"{used}\n",
        f"{folder}/memory.stat": f"cache 7\n{names[2]} {cached}\n",
    }


def test_available_memory_is_the_kernels_estimate_without_a_limit(tmp_path):
    assert _memory.available_bytes(fake_machine(tmp_path, {})) == 500 * 1024


@pytest.mark.parametrize(
    ("version", "membership", "mount"),
    [
        (1, "4:cpu,memory:/job/task\n3:pids:/x\n", "sys/fs/cgroup/memory"),
        (2, "0::/job/task\n", "sys/fs/cgroup"),
    ],
)
@pytest.mark.parametrize("folder", ["", "/job", "/job/task"])
def test_a_control_groups_limit_holds_at_every_level(tmp_path, version, membership, mount, folder):
    files = {"proc/self/cgroup": membership, **group_files(mount + folder, version, 9000, 4000, 1500)}
    assert _memory.available_bytes(fake_machine(tmp_path, files)) == 9000 - 4000 + 1500


@pytest.mark.parametrize("limit", ["max", 2**62])
def test_a_limit_that_is_not_set_or_above_the_machines_memory_changes_nothing(tmp_path, limit):
    files = {"proc/self/cgroup": "0::/\n", **group_files("sys/fs/cgroup", 2, limit, 4000, 0)}
    assert _memory.available_bytes(fake_machine(tmp_path, files)) == 500 * 1024


def test_a_spent_limit_leaves_nothing_rather_than_less(tmp_path):
    files = {"proc/self/cgroup": "0::/\n", **group_files("sys/fs/cgroup", 2, 100, 4000, 0)}
    assert _memory.available_bytes(fake_machine(tmp_path, files)) == 0


def test_without_proc_the_system_is_asked_and_may_not_know(tmp_path, monkeypatch):
    monkeypatch.setattr(_memory.os, "sysconf_names", {"SC_PHYS_PAGES": 1, "SC_PAGE_SIZE": 2})
    monkeypatch.setattr(_memory.os, "sysconf", {"SC_PHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}.get)
    assert _memory.available_bytes(tmp_path) == 40960
    monkeypatch.setattr(_memory.os, "sysconf_names", {})
    assert _memory.available_bytes(tmp_path) is None


def test_the_limit_of_the_address_space_counts(tmp_path, monkeypatch):
    resource = pytest.importorskip("resource")
    machine = fake_machine(tmp_path, {"proc/self/status": "Name: x\nVmSize:\t 300 kB\n"})
    limit = [400 * 1024]
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit[0], resource.RLIM_INFINITY))
    assert _memory.available_bytes(machine) == 100 * 1024
    limit[0] = 200 * 1024
    assert _memory.available_bytes(machine) == 0
    limit[0] = resource.RLIM_INFINITY
    assert _memory.available_bytes(machine) == 500 * 1024


def test_what_the_address_space_does_not_hold_is_refused_in_words():
    resource = pytest.importorskip("resource")
    if resource.getrlimit(resource.RLIMIT_AS)[1] != resource.RLIM_INFINITY:
        pytest.skip("this process has a limit already")
    code = (
        "import resource; from simdims import _memory\n"
        "used = 1024 * (_memory._field(_memory.Path('/proc/self/status'), 'VmSize:') or 0)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, resource.RLIM_INFINITY))\n"
        "_memory.require(2**29, 'A copy', 'use less')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MemoryError: A copy would need 512.0 MiB of memory" in done.stderr


def test_small_needs_are_not_asked_about(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 0)
    _memory.require(2**20, "A copy", "use less")


# What is asked for before work starts


def masked(n_items=60, share=0.7):
    W = simulate.dirichlet(n_items, 3, random_state=0)
    return simulate.mask_pairs(W @ W.T, share, random_state=0)


def leave(n_bytes, monkeypatch):
    """Leave so much memory, and check every allocation."""
    monkeypatch.setattr(_memory, "available_bytes", lambda: n_bytes)
    monkeypatch.setattr(_memory, "_ALWAYS_THERE", 0)


ASKED = {
    "observed": (lambda: SRF(6, random_state=0).fit(masked()), "filled copy of 60 x 60 similarities .* sparse"),
    "lists": (lambda: SRF(7, random_state=0).fit(masked(share=0.3)), "Lists of the .* known pairs .* float32"),
    "admm": (
        lambda: SRF(6, solver="admm", random_state=0).fit(masked()),
        "auxiliary matrix and the dual of ADMM .* float32 .* solver='bcd'",
    ),
    "weights": (
        lambda: SRF(3, random_state=0).fit(as_similarity(np.ones((60, 60)), weights=1.0 + np.eye(60), copy=False)),
        "A copy of the weighted similarities .* float32",
    ),
    "features": (lambda: from_features(np.ones((60, 3))), "A matrix of 60 x 60 .* float32 .* implicit=True"),
    "landmarks": (lambda: from_features(-np.ones((60, 3)), implicit=True), "similarities of 60 items to 60 landmarks"),
    "selection": (
        lambda: select_rank(masked(), [2], random_state=0),
        "A fit of 60 items with pairs left out .* float32",
    ),
    "selection, four jobs": (
        lambda: select_rank(masked(), [2], random_state=0, n_jobs=4),
        "left out, 4 at a time, .* each, would need .* fewer n_jobs, or pass float32",
    ),
    "consensus": (lambda: fit_consensus(masked(), 1, n_runs=2), "A fit of 60 items would need .* float32"),
    "consensus, four jobs": (
        lambda: fit_consensus(masked(), 1, n_runs=3, n_jobs=4),
        "A fit of 60 items, 3 at a time, 28800 bytes each, would need .* fewer n_jobs",
    ),
}


def test_ranks_of_implicit_similarities_are_refused_before_any_matrix_is_made(monkeypatch):
    W = simulate.dirichlet(1500, 3, random_state=0)
    leave(10**6, monkeypatch)
    with traced_memory() as peak:
        with pytest.raises(MemoryError, match=r"model matrices would need .* Pearson"):
            rsa_test(Similarity.from_factors(W), W[:, :1], method="spearman", n_permutations=9)
        assert peak() < W.nbytes * 100


@pytest.mark.parametrize("case", ASKED)
def test_a_need_beyond_the_machine_is_refused_with_the_ways_out(case, monkeypatch):
    call, sentence = ASKED[case]
    leave(8000, monkeypatch)
    with pytest.raises(MemoryError, match=sentence):
        call()


def test_workers_elsewhere_do_not_count():
    assert _parallel.workers_here(None) == 1
    assert _parallel.workers_here(3) == 3
    with joblib.parallel_config("threading", n_jobs=2):
        assert _parallel.workers_here(None) == 2


def test_several_workers_need_as_much_each(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 3 * 2**30)
    _memory.require_for_workers(2**30, 3, "A fit", "use less")
    with pytest.raises(MemoryError) as caught:
        _memory.require_for_workers(2**30, 4, "A fit", "use less")
    for words in ("A fit, 4 at a time, 1.0 GiB each", "4.0 GiB", "n_jobs, or use less"):
        assert words in str(caught.value)
