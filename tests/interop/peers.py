"""Agents that are written in JavaScript: what they need is installed once, into a cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import platformdirs
import pytest

#: What is installed, with its versions, and the agent that is written here.
NPM = Path(__file__).with_name("npm")
#: Seconds that the installation may take.
INSTALLED_WITHIN = 300


def node_modules() -> Path:
    """The folder of the packages; installs them when they are not there yet.

    Skips the test where Node is missing.
    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("Node and npm are not installed")
    wanted = (NPM / "package.json").read_bytes()
    cache = Path(platformdirs.user_cache_dir("ahpd-tests", appauthor=False))
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"npm-{hashlib.sha256(wanted).hexdigest()[:16]}"
    with (cache / "npm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes come here at the same time
        if not folder.is_dir():
            _install(npm, wanted, folder)
    return folder / "node_modules"


def _install(npm: str, wanted: bytes, folder: Path) -> None:
    """Whole or not at all: it is made beside its place."""
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        (made / "package.json").write_bytes(wanted)
        command = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock"]
        done = subprocess.run(
            [*command, "--ignore-scripts"],
            cwd=made,
            env={**os.environ, "npm_config_update_notifier": "false"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=INSTALLED_WITHIN,
            check=False,
        )
        assert done.returncode == 0, done.stdout.decode(errors="replace")
        made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def node_agent(folder: Path, modules: Path) -> Path:
    """The agent of this project's on the SDK, in a folder where it finds that."""
    (folder / "node_modules").symlink_to(modules)
    return Path(shutil.copy(NPM / "node_agent.mjs", folder))


def example_agent(modules: Path) -> tuple[str, ...]:
    """The command line of the SDK's own example, as it is published."""
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
    version = int(said.stdout.strip().removeprefix("v").partition(".")[0])
    # Node 18, as Debian has it, does not have all that the example uses unless it is asked to.
    flags = ["--experimental-global-webcrypto"] if version < 19 else []
    return ("node", *flags, str(modules / "example" / "dist" / "examples" / "agent.js"))
