"""Checks of what a daemon is started with, and of what it keeps."""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from ahpd.daemon.doctor.findings import Check, Finding, Subject, Teller, check
from ahpd.journal import inspecting
from ahpd.journal.port import JournalDamaged, JournalFailed
from ahpd.transports import auth

#: Seconds that are spent on the journal's content; what is left then was not looked at.
JOURNAL_WITHIN = 10.0
#: Seconds that a collector may take to be reached.
COLLECTOR_WITHIN = 3.0
#: Bytes of a journal whose content is looked at whole; more would take minutes.
JOURNAL_BYTES = 256 << 20
#: Damage that is told of each by each.
MOST_FAULTS = 5
#: Characters of the longest path of a socket.
_SOCKET_PATH = 107
#: File systems of other machines, where locks and SQLite's shared memory cannot be relied on.
_REMOTE = frozenset(("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "afs", "ceph"))

_KEPT = "what is kept"


@check(_KEPT, "configuration")
def configuration(subject: Subject, tell: Teller) -> Iterator[Finding]:
    """The file, and the folders it serves."""
    if subject.wrong is not None:
        yield tell.fail(subject.wrong, "mend the file; a daemon does not start with it")
        return
    for warning in subject.warnings:
        yield tell.warn(warning)
    wrong = 0
    for name in subject.paths:
        path = Path(name).expanduser()
        if not path.is_dir():
            wrong += 1
            yield tell.fail(f"{name}: there is no such folder to serve", "make it, or take it out")
        elif not os.access(path, os.R_OK | os.X_OK):
            wrong += 1
            yield tell.fail(f"{name}: its files cannot be read", "see its rights")
    if not subject.warnings and not wrong:
        yield tell.ok(f"nothing is wrong with it; it serves {', '.join(subject.paths)}")


@check(_KEPT, "state folder")
def state_folder(subject: Subject, tell: Teller) -> Iterator[Finding]:
    """Its rights, its place."""
    folder = subject.folder.path
    if len(os.fsencode(subject.folder.socket)) > _SOCKET_PATH:
        yield tell.fail(
            f"{subject.folder.socket} is too long for a socket, by"
            f" {len(os.fsencode(subject.folder.socket)) - _SOCKET_PATH} bytes",
            "use a shorter --state-dir",
        )
    if not folder.exists():
        yield tell.ok(f"{folder} is made at the first start")
        return
    about = folder.stat()
    loose = stat.S_IMODE(about.st_mode) & 0o077
    if about.st_uid != os.getuid():
        yield tell.fail(f"{folder} belongs to another user", "use another --state-dir")
        return
    if loose:
        yield tell.warn(f"others have rights on {folder}", f"chmod 700 {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        yield tell.fail(f"{folder} cannot be written", f"chmod 700 {folder}; is it read-only?")
    remote = _file_system(folder)
    if remote in _REMOTE:
        yield tell.warn(
            f"{folder} is on another machine ({remote}), where locks cannot be relied on",
            "use a --state-dir on a disk of this machine",
        )
    yield from _open_files(folder, tell)
    if not loose:
        yield tell.ok(str(folder))


def _open_files(folder: Path, tell: Teller) -> Iterator[Finding]:
    """Files of ours that others can use."""
    for each in sorted(folder.iterdir()):
        about = each.lstat()
        if stat.S_ISREG(about.st_mode) and stat.S_IMODE(about.st_mode) & 0o077:
            yield tell.warn(f"others have rights on {each}", f"chmod 600 {each}")


def _file_system(path: Path) -> str | None:
    """The kind of the file system that a path is on, where the kernel says so."""
    best, kind = "", None
    try:
        mounts = Path("/proc/self/mounts").read_text(errors="replace")
    except OSError:
        return None
    whole = str(path.resolve())
    for line in mounts.splitlines():
        words = line.split()
        at = words[1].replace("\\040", " ") if len(words) > 2 else ""
        if at and (whole == at or whole.startswith(at.rstrip("/") + "/")) and len(at) >= len(best):
            best, kind = at, words[2]
    return kind


@check(_KEPT, "token")
def token(subject: Subject, tell: Teller) -> Iterator[Finding]:
    """The connection token's file."""
    if not subject.needs_token:
        yield tell.ok("none, or one of the command line")
        return
    file = subject.folder.token if subject.token_file is None else Path(subject.token_file)
    try:
        text = auth.read_token(file)
    except FileNotFoundError:
        yield tell.ok(f"{file} is made at the first start")
    except auth.TokenError as error:
        yield tell.fail(str(error), f"or remove {file}, and a new one is made at the next start")
    except OSError as error:
        yield tell.fail(f"{file}: {error.strerror}")
    else:
        if len(text) < 16:
            yield tell.warn(
                f"the token in {file} has only {len(text)} characters",
                "remove it; a new one is made",
            )
        else:
            yield tell.ok(str(file))


@check(_KEPT, "port")
def port(subject: Subject, tell: Teller) -> Iterator[Finding]:
    """Whether a daemon could listen there; one that runs is asked itself."""
    config = subject.config
    where = f"{config.host} port {config.port}"
    if subject.endpoint is not None or not config.port:
        yield tell.ok(where if config.port else f"{config.host}, any free port")
        return
    try:
        found = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)
    except OSError as error:
        yield tell.fail(
            f"{config.host}: {error.strerror}", "set `host` to an address of this machine"
        )
        return
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(1)
        except OSError as error:
            yield tell.fail(
                f"cannot listen on {where}: {error.strerror}",
                f"see who does: ss -ltnp 'sport = :{config.port}'; or use another --port",
            )
            return
    yield tell.ok(f"{where} is free")


@check(_KEPT, "journal")
def journal(subject: Subject, tell: Teller) -> Iterator[Finding]:
    """Whether it can be read, and how much of what is in it is what was written."""
    file = subject.folder.journal
    if not file.exists():
        yield tell.ok(f"{file} is made at the first start")
        return
    try:
        stats = inspecting.stats(file)
        size = stats.file + stats.wal
        text = f"{size / (1 << 20):.1f} MiB, {stats.rows.get('channels', 0)} channels"
        if size > JOURNAL_BYTES:
            yield tell.ok(f"{text}; too long to look at all of it here: ahpd journal verify does")
            return
        until, count = time.monotonic() + JOURNAL_WITHIN, 0
        for fault in inspecting.check(file):
            count += 1
            if count <= MOST_FAULTS:
                yield tell.fail(
                    f"damaged: {fault}", "save what there is: ahpd journal export SESSION"
                )
            if time.monotonic() > until:
                yield tell.warn(f"{text}; there was no time for all of it", "ahpd journal verify")
                return
    except JournalDamaged as error:
        yield tell.fail(str(error), "save what there is (ahpd journal export), then move it away")
        return
    except (JournalFailed, OSError) as error:
        yield tell.fail(f"it cannot be read: {error}")
        return
    if count > MOST_FAULTS:
        yield tell.fail(f"and {count - MOST_FAULTS} faults more", "ahpd journal verify")
    elif not count:
        yield tell.ok(f"{text}, all as it was written")


@check(_KEPT, "log")
def log(subject: Subject, tell: Teller) -> Iterator[Finding]:
    """Whether what happens can be written down."""
    named = subject.config.log.file
    file = subject.folder.log if named is None else Path(named)
    size = file.stat().st_size if file.exists() else 0
    if named is not None and not file.parent.is_dir():
        yield tell.fail(f"{file}: there is no such folder", "make it, or change log.file")
    elif not os.access(file if file.exists() else file.parent, os.W_OK) and named is not None:
        yield tell.fail(f"{file} cannot be written", "see its rights, or change log.file")
    elif named is None and not size:
        yield tell.ok("standard error")
    else:
        yield tell.ok(f"{file}, {size / (1 << 20):.1f} MiB")


@check(_KEPT, "collector")
def collector(subject: Subject, tell: Teller) -> Iterator[Finding]:
    """Whether the telemetry collector is there."""
    endpoint = subject.config.telemetry.endpoint
    if endpoint is None:
        return
    parts = urlsplit(endpoint)
    where = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection(where, timeout=COLLECTOR_WITHIN).close()
    except OSError as error:
        yield tell.warn(
            f"{parts.scheme}://{where[0]}:{where[1]} cannot be reached: {error.strerror or error}",
            "start it, or take telemetry.endpoint out; the host works without",
        )
    else:
        yield tell.ok(f"{parts.scheme}://{where[0]}:{where[1]} is there")


CHECKS: Sequence[Check] = (configuration, state_folder, token, port, journal, log, collector)
