"""Claims beside a control in which their mechanism is switched off.

A claim that comes out with its mechanism and without it says nothing of the mechanism: it is not shown.
"""

from __future__ import annotations

from typing import Final

SHOWN: Final = "shown"
_VERDICTS: Final = {(True, False): SHOWN, (True, True): "not shown", (False, False): "off", (False, True): "off"}


def verdict_of(comes_out: bool, without: bool) -> str:
    """``shown``, ``not shown`` (it comes out ``without`` its mechanism as well) or ``off``."""
    return _VERDICTS[bool(comes_out), bool(without)]
