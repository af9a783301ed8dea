"""How much memory is available, and an error before more than that is allocated."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

# The check takes longer than a small fit, so smaller allocations are not checked.
_ALWAYS_THERE = 2**26

# Files of Linux control groups, version 1 and 2: mount, limit, usage, and the cached files among the usage.
_VERSION_1 = ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_VERSION_2 = ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")


def require(n_bytes: int, what: str, remedy: str) -> None:
    """Raise MemoryError if `n_bytes`, which `what` needs, are more than the machine has available."""
    if n_bytes < _ALWAYS_THERE:
        return
    available = available_bytes()
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{what} would need {_in_words(n_bytes)} of memory, but this machine has {_in_words(available)} "
            f"available: {remedy}."
        )


def require_for_workers(n_bytes: int, n_workers: int, what: str, remedy: str) -> None:
    """Raise MemoryError if `n_workers` that need `n_bytes` each need more than the machine has available."""
    if n_workers == 1:
        require(n_bytes, what, remedy)
    else:
        each = f"{n_workers} at a time, {_in_words(n_bytes)} each,"
        require(n_workers * n_bytes, f"{what}, {each}", f"fewer n_jobs, or {remedy}")


def available_bytes(root: Path = Path("/")) -> int | None:
    """The bytes this process may still allocate, or None if the system does not say; `root` has proc and sys.

    On Linux, the minimum of the kernel's estimate of available memory, what remains under the limits of control groups,
    and what remains under the limit of this process (RLIMIT_AS, as set by ``ulimit -v`` and batch systems); elsewhere,
    what ``os.sysconf`` reports.
    """
    machine = _field(root / "proc/meminfo", "MemAvailable:")
    limits = [_sysconf_bytes()] if machine is None else [1024 * machine, *_left_by_control_groups(root)]
    known = [left for left in (*limits, _left_of_address_space(root)) if left is not None]
    return max(0, min(known)) if known else None


def _left_by_control_groups(root: Path) -> list[int]:
    """What remains under each memory limit of this process; the limits of parent groups also apply."""
    left = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        mount, limit_file, usage_file, cached_field = _VERSION_1 if controllers else _VERSION_2
        path = PurePosixPath(group.lstrip("/"))
        # In a container the path may be the host's; the mount's own root then holds the container's limit.
        for folder in (root / mount / parent for parent in [path, *path.parents]):
            limit, usage = _read(folder / limit_file).strip(), _read(folder / usage_file).strip()
            if limit.isdigit() and usage.isdigit():  # "max" if no limit is set
                # Usage counts cached files, which the kernel drops before it refuses an allocation.
                left.append(int(limit) - int(usage) + (_field(folder / "memory.stat", cached_field) or 0))
    return left


def _left_of_address_space(root: Path) -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    return max(0, int(limit) - 1024 * (_field(root / "proc/self/status", "VmSize:") or 0))


def _sysconf_bytes() -> int | None:
    names = getattr(os, "sysconf_names", {})
    for pages in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        if pages in names and "SC_PAGE_SIZE" in names:
            return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _field(path: Path, name: str) -> int | None:
    for line in _read(path).splitlines():
        words = line.split()
        if words and words[0] == name:
            return int(words[1])
    return None


def _in_words(n_bytes: int) -> str:
    if n_bytes > 2**80:
        return "more than 2^50 GiB"
    for unit, size in (("GiB", 2**30), ("MiB", 2**20)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} bytes"
