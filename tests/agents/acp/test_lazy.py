"""A host that has no agent of this kind does not pay for it."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
from ahpd.daemon.hosting import build_agents
from ahpd.daemon.config import AgentConfig
build_agents({})
assert not [each for each in sys.modules if each.startswith("ahpd.agents.acp")]
build_agents({"x": AgentConfig(kind="acp", command=("y",))})
loaded = {each for each in sys.modules if each.startswith("ahpd.agents.acp")}
allowed = {"ahpd.agents.acp", "ahpd.agents.acp.agent", "ahpd.agents.acp.learned"}
assert loaded == allowed, loaded
"""


def test_it_is_imported_when_it_is_needed() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True, timeout=60)
