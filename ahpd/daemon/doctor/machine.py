"""Checks of the machine and of the installation on it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import pty
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ahpd import __version__
from ahpd.daemon.doctor.findings import Check, Finding, Subject, Teller, check
from ahpd.resources.inotify import Inotify, WatchLimit
from ahpd.terminals.shells import scripts, shell_in

#: Seconds that a program may take to say its version.
PROGRAM_WITHIN = 5.0
#: Fewer open files (of the daemon) than these are told: each client, terminal and agent needs some.
FEW_FILES = 4096
#: Fewer watches than these are told: a large working tree has as many folders.
FEW_WATCHES = 65_536
#: Bytes that should be free where the state is kept; with less than the second it soon stops.
LITTLE_SPACE, NO_SPACE = 1 << 30, 100 << 20
#: Versions from which on a shell tells of its commands.
_LEAST_BASH = (4, 4)

_MACHINE = "machine"
_PROC = Path("/proc")


def _said(command: Sequence[str]) -> str | None:
    """What a program says; None when it cannot be run or takes too long."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROGRAM_WITHIN,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = done.stdout.decode(errors="replace").strip()
    return text if done.returncode == 0 else None


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


@check(_MACHINE, "python")
def python(_: Subject, tell: Teller) -> Iterator[Finding]:
    """The interpreter, and the packages that are needed."""
    missing = []
    for line in importlib.metadata.requires("ahpd") or ():
        name = re.split(r"[\s;<>=!~\[(]", line, maxsplit=1)[0]
        if "extra ==" not in line and not _is_there(name):
            missing.append(name)
    yield tell.ok(f"ahpd {__version__}, Python {platform.python_version()}, {sys.executable}")
    if missing:
        yield tell.fail(
            f"packages are missing: {', '.join(missing)}",
            f"install it again: {sys.executable} -m pip install --force-reinstall ahpd",
        )


def _is_there(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


@check(_MACHINE, "command")
def command(_: Subject, tell: Teller) -> Iterator[Finding]:
    """Whether others can start it by its name."""
    found = shutil.which("ahpd")
    ours = Path(sys.executable).parent / "ahpd"
    if found is None:
        yield tell.warn(
            "ahpd is not in PATH, so an editor that is to start it does not find it",
            f"say its whole name there: {ours}",
        )
    elif ours.exists() and Path(found).resolve() != ours.resolve():
        yield tell.warn(
            f"the ahpd in PATH is another one: {found}", f"this one is {ours}; put it first in PATH"
        )
    else:
        yield tell.ok(found)


@check(_MACHINE, "git")
def git(_: Subject, tell: Teller) -> Iterator[Finding]:
    """For changesets and worktrees."""
    version = _said(["git", "--version"])
    if version is None:
        yield tell.warn(
            "there is no git that answers: sessions have no changesets and no worktrees",
            "install git, or see why `git --version` fails",
        )
    else:
        yield tell.ok(version)


@check(_MACHINE, "shell")
def shell(_: Subject, tell: Teller) -> Iterator[Finding]:
    """What terminals start."""
    program = shell_in(os.environ)
    name = os.path.basename(program)
    if shutil.which(program) is None:
        yield tell.fail(
            f"{program} cannot be run: terminals do not start", "set SHELL, or use chsh"
        )
        return
    version = _said([program, "--version"]) or ""
    first = version.splitlines()[0] if version else program
    number = re.search(r"(\d+)\.(\d+)", first)
    old = name == "bash" and number is not None and tuple(map(int, number.groups())) < _LEAST_BASH
    if name not in ("bash", "zsh", "fish") or old:
        yield tell.warn(
            f"{first}: it does not tell of the commands in it, so clients see only output",
            "have bash 4.4 or later, zsh or fish as SHELL",
        )
    else:
        yield tell.ok(f"{program}: {first}")
    if scripts() is None:
        yield tell.fail(
            "the scripts that make shells tell of their commands were left out",
            "install it again: they belong to the package",
        )


@check(_MACHINE, "pty")
def pseudo_terminal(_: Subject, tell: Teller) -> Iterator[Finding]:
    """Whether a pseudo-terminal can be had, and carries what is written to it."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        yield tell.fail(
            f"no pseudo-terminal can be had: {error.strerror}",
            "is /dev/pts mounted, and is sysctl kernel.pty.max not reached?",
        )
        return
    try:
        os.write(theirs, b"ok\n")
        came = os.read(ours, 16)
    finally:
        os.close(ours)
        os.close(theirs)
    if not came.startswith(b"ok"):
        yield tell.fail("a pseudo-terminal does not carry what is written to it")
        return
    used, most = _number(_PROC / "sys/kernel/pty/nr"), _number(_PROC / "sys/kernel/pty/max")
    if used is not None and most is not None and used > most * 0.9:
        yield tell.warn(
            f"{used} of {most} pseudo-terminals are in use", "sysctl -w kernel.pty.max=…"
        )
    else:
        yield tell.ok("works" if used is None else f"works; {used} of {most} are in use")


@check(_MACHINE, "inotify")
def inotify(_: Subject, tell: Teller) -> Iterator[Finding]:
    """Watches on files."""
    if sys.platform != "linux":
        yield tell.warn("files can be watched on Linux only: clients are refused watches here")
        return
    try:
        made = Inotify()
    except (WatchLimit, OSError) as error:
        yield tell.fail(
            f"no watch can be made: {error}",
            "sysctl -w fs.inotify.max_user_instances=512 (and in /etc/sysctl.d)",
        )
        return
    del made  # which lets go of the descriptor
    inotify = _PROC / "sys/fs/inotify"
    watches = _number(inotify / "max_user_watches")
    if watches is not None and watches < FEW_WATCHES:
        yield tell.warn(
            f"{watches} folders can be watched at a time, by all programs together",
            "sysctl -w fs.inotify.max_user_watches=524288 (and in /etc/sysctl.d)",
        )
    else:
        yield tell.ok(f"{watches if watches is not None else 'some'} folders can be watched")


@check(_MACHINE, "files")
def open_files(subject: Subject, tell: Teller) -> Iterator[Finding]:
    """How many files the daemon, or one started from here, may have open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    whose = "a daemon that is started from here"
    used: int | None = None
    if subject.pid:
        with suppress(OSError, ValueError, IndexError):
            limits = (_PROC / str(subject.pid) / "limits").read_text()
            line = next(each for each in limits.splitlines() if each.startswith("Max open files"))
            soft, hard = (_limit(word) for word in line.split()[3:5])
            used = len(os.listdir(_PROC / str(subject.pid) / "fd"))
            whose = "the daemon"
    many = "any number of" if soft == resource.RLIM_INFINITY else str(soft)
    text = f"{whose} may have {many} files open" + ("" if used is None else f", and has {used}")
    few = soft != resource.RLIM_INFINITY and (soft < FEW_FILES or (used or 0) > soft * 0.8)
    if few:
        can = "" if hard in (resource.RLIM_INFINITY, soft) else f", up to {hard}"
        yield tell.warn(
            text,
            f"ulimit -n {max(FEW_FILES, soft)} before it starts{can}; LimitNOFILE= with systemd",
        )
    else:
        yield tell.ok(text)


def _limit(word: str) -> int:
    return resource.RLIM_INFINITY if word == "unlimited" else int(word)


@check(_MACHINE, "disk")
def disk(subject: Subject, tell: Teller) -> Iterator[Finding]:
    """Room where the state is kept."""
    folder = subject.folder.path
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        about = os.statvfs(folder)
    except OSError as error:
        yield tell.fail(f"{folder}: {error.strerror}")
        return
    free = about.f_bavail * about.f_frsize
    text = f"{free / (1 << 30):.1f} GiB are free at {folder}"
    advice = "make room, or use --state-dir on another disk; ahpd journal compact gives some back"
    if free < NO_SPACE:
        yield tell.fail(text, advice)
    elif free < LITTLE_SPACE:
        yield tell.warn(text, advice)
    elif about.f_files and about.f_favail < 1000:
        yield tell.warn(f"only {about.f_favail} more files can be made at {folder}", advice)
    else:
        yield tell.ok(text)


CHECKS: Sequence[Check] = (
    python, command, git, shell, pseudo_terminal, inotify, open_files, disk,
)  # fmt: skip
