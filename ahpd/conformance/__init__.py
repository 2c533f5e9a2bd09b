"""Cases of the protocol, run against `ahpd.protocol` and `ahpd.reducers`.

A folder of cases holds any of

* ``reducers/*.json``: ``{description, reducer, initial, actions, expected}``;
* ``round-trips/*.json``: ``{name, type, input, acceptableOutputs, preservedOutput?}``;
* ``version-negotiation.json``: ``[{offered, expected}]``, where `expected` is the version chosen,
  null when none fits, or ``"invalid"`` when the offer is refused as malformed.

A file holds one case or an array of them. `run` runs a folder; `names` knows the types that round
trips name, `compare` says where two JSON values differ.
"""

from ahpd.conformance.runner import Failure, NoCases, Report, Section, run

__all__ = ["Failure", "NoCases", "Report", "Section", "run"]
