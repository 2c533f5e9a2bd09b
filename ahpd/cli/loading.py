"""`loading`: for importing what a host consists of."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """No garbage is looked for inside, nor ever again among what was made there.

    Nothing of what is imported can be garbage, and looking for it takes a tenth of the time.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
