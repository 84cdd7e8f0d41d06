"""What cannot be copied: objects whose memory compiled functions reach by its address."""

from __future__ import annotations

from typing import NoReturn, SupportsIndex


class Uncopied:
    """Refuses ``copy``, ``deepcopy`` and ``pickle``: a copy would hold the addresses of the original's memory."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse.

        Raises:
            TypeError: always; it names the way to copy a state.
        """
        raise TypeError(
            f"{type(self).__name__} cannot be copied or pickled: it holds addresses of memory; "
            "make another one and give it the state: save_state() and restore_state(), "
            "of a device snapshot() and restore()"
        )
