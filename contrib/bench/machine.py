"""What shells and files cost on this machine, in one run: `terminals.py`, then `files.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run both; 0 when both did their work."""
    here = Path(__file__).parent
    ended = [
        subprocess.run([sys.executable, here / name], check=False).returncode
        for name in ("terminals.py", "files.py")
    ]
    return max(map(abs, ended))


if __name__ == "__main__":
    sys.exit(main())
