"""How every test runs: async tests on trio's mock clock, unless marked ``real_time``."""

from __future__ import annotations

import faulthandler
import inspect
import os
import signal
from collections.abc import Iterator

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.wire"]

#: Seconds of real time after which a test that hangs prints every stack and ends the run.
#: On the mock clock a task that never blocks stops time for ever, so only this finds it.
HANG_AFTER = 120

# Examples for each property. `default` gives the same ones every time, so that a run is a fact
# about the code; `deep` (--hypothesis-profile=deep) looks for new ones. Both print what to repeat.
_QUIET = (HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large)
settings.register_profile(
    "default", max_examples=6, deadline=None, derandomize=True, database=None,
    suppress_health_check=_QUIET, print_blob=True,
)  # fmt: skip
settings.register_profile(
    "deep", max_examples=200, deadline=None, suppress_health_check=_QUIET, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure() -> None:
    """Ctrl-C means something to what tests start, also when they run in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run ``async def`` tests under trio; time jumps to the next deadline when all tasks wait."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    kwargs = {name: pyfuncitem.funcargs[name] for name in names}

    async def run() -> None:
        await pyfuncitem.obj(**kwargs)

    if pyfuncitem.get_closest_marker("real_time"):
        trio.run(run, strict_exception_groups=True)
    else:
        trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))
    return True


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """Print all stacks and exit when one test takes longer than `HANG_AFTER` seconds."""
    faulthandler.dump_traceback_later(HANG_AFTER, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
