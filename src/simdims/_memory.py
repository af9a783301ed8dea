"""How much memory is left, and a refusal in words before more than that is allocated."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import NamedTuple

# Asking takes longer than a small fit; what is less than this is not asked for.
_ALWAYS_THERE = 2**26


def available_bytes(root: Path = Path("/")) -> int | None:
    """Return the bytes this process may still allocate, or None where the system does not say.

    Parameters
    ----------
    root : Path, default=Path("/")
        Where ``proc`` and ``sys`` are mounted.

    Returns
    -------
    int or None
        On Linux the kernel's estimate of available memory, or what is left of the control group's limit or of the
        process's own (RLIMIT_AS, as ``ulimit -v`` and batch systems set it) where that is less; elsewhere what
        ``os.sysconf`` reports.

    Examples
    --------
    >>> from simdims._memory import available_bytes
    >>> available_bytes() is None or available_bytes() > 0
    True
    """
    machine = _meminfo_available(root)
    limits = [_sysconf_bytes()] if machine is None else [machine, *_control_group_headrooms(root)]
    known = [left for left in (*limits, _address_space(root)) if left is not None]
    return max(0, min(known)) if known else None


def require(n_bytes: int, what: str, ways_out: str) -> None:
    """Raise MemoryError if `n_bytes` is more than the machine has available.

    Parameters
    ----------
    n_bytes : int
        The bytes about to be allocated.
    what : str
        What they are for; begins the sentence.
    ways_out : str
        What the user can do instead; ends the sentence.

    Raises
    ------
    MemoryError
        If fewer bytes are known to be available.

    Examples
    --------
    >>> from simdims._memory import require
    >>> require(1000, "A copy of values", "pass float32 values")
    """
    if n_bytes < _ALWAYS_THERE:
        return
    available = available_bytes()
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{what} would need {_in_words(n_bytes)} of memory, but this machine has {_in_words(available)} "
            f"available: {ways_out}."
        )


def require_for_workers(n_bytes: int, n_workers: int, what: str, ways_out: str) -> None:
    """Raise MemoryError if `n_workers` times `n_bytes` is more than the machine has available.

    Parameters
    ----------
    n_bytes : int
        The bytes that one of them is about to allocate.
    n_workers : int
        How many of them work side by side.
    what : str
        What one of them does; begins the sentence.
    ways_out : str
        What the user can do instead; where there are several workers, fewer jobs are named too.

    Examples
    --------
    >>> from simdims._memory import require_for_workers
    >>> require_for_workers(1000, 2, "A fit", "pass float32 values")
    """
    if n_workers == 1:
        require(n_bytes, what, ways_out)
    else:
        each = f"{n_workers} at a time, {_in_words(n_bytes)} each,"
        require(n_workers * n_bytes, f"{what}, {each}", f"fewer n_jobs, or {ways_out}")


class _ControlGroup(NamedTuple):
    """The file names of one version of Linux control groups."""

    mount: str
    limit: str
    usage: str
    reclaimable: str


_VERSION_1 = _ControlGroup(
    "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
)
_VERSION_2 = _ControlGroup("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")


def _meminfo_available(root: Path) -> int | None:
    kibibytes = _field(root / "proc/meminfo", "MemAvailable:")
    return None if kibibytes is None else 1024 * kibibytes


def _control_group_headrooms(root: Path) -> list[int]:
    """What each memory limit above this process leaves; a group is bound by its parents' limits as well."""
    headrooms = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        version = _VERSION_1 if controllers else _VERSION_2
        path = PurePosixPath(group.lstrip("/"))
        # In a container the path may be the host's; the mount's own root then holds the container's limit.
        for folder in [path, *path.parents]:
            headroom = _headroom(root / version.mount / folder, version)
            if headroom is not None:
                headrooms.append(headroom)
    return headrooms


def _headroom(folder: Path, version: _ControlGroup) -> int | None:
    limit, usage = _number(_read(folder / version.limit)), _number(_read(folder / version.usage))
    if limit is None or usage is None:
        return None
    # Usage counts cached files, which the kernel gives up before it refuses an allocation.
    reclaimable = _field(folder / "memory.stat", version.reclaimable) or 0
    return limit - usage + reclaimable


def _address_space(root: Path) -> int | None:
    """What the limit of this process's address space leaves; None where there is no such limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    used = _field(root / "proc/self/status", "VmSize:")
    return max(0, int(limit) - 1024 * (used or 0))


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


def _number(text: str) -> int | None:
    """The number in `text`; None for an unset limit ("max") and for a file that is not there."""
    return int(text) if text.strip().isdigit() else None


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
