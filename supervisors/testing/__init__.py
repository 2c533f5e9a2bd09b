"""Help for tests of actors: repeatable runs, leak checks, cuts at every step, a child on a string.

Shipped, so that the users of actors can test theirs the same way.
"""

from supervisors.testing._cut import Cutter, cut_at_every_step
from supervisors.testing._fake import Deed, FakeChild
from supervisors.testing._leaks import check_tree, leak_check
from supervisors.testing._seeded import run_seeded

__all__ = [
    "Cutter",
    "Deed",
    "FakeChild",
    "check_tree",
    "cut_at_every_step",
    "leak_check",
    "run_seeded",
]
