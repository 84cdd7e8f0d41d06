"""Ray's clusters by their addresses."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import ray

from gpusched_env.errors import InputError

LOCAL: Final = "local"
ANSWERS_S: Final = 10.0
GREETING: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""How HTTP/2 begins, on which Ray speaks (RFC 9113, 3.4): whoever knows it answers at once."""


@contextlib.contextmanager
def connected(address: str) -> Iterator[None]:
    """Ray at ``address``: of a cluster (``host:port``, ``auto``, ``ray://...``), or :data:`LOCAL`, one of this machine.

    Raises:
        InputError: nobody answers there within ten seconds, or no cluster.
    """
    try:
        _check_answer(address)
        ray.init(address=address, include_dashboard=False if address == LOCAL else None, log_to_driver=False)
    except (OSError, ValueError) as error:
        raise InputError(f"--ray-address {address}: no Ray cluster ({error})") from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_answer(address: str) -> None:
    """Ray itself asks for minutes.

    Raises:
        OSError: nobody answers.
    """
    place = urlsplit(address if "//" in address else f"//{address}")
    if place.hostname is None or place.port is None:
        return
    found: list[OSError] = [TimeoutError(f"no answer within {ANSWERS_S:g} s")]

    def ask(host: str, port: int) -> None:
        try:
            with socket.create_connection((host, port), timeout=ANSWERS_S) as asked:
                asked.sendall(GREETING)
                if not asked.recv(1):
                    raise ConnectionError("what answers is no gRPC")
            found.clear()
        except OSError as error:
            found[0] = error

    # Neither has looking a name up a limit.
    asking = threading.Thread(target=ask, args=(place.hostname, place.port), daemon=True)
    asking.start()
    asking.join(ANSWERS_S)
    if found:
        raise found[0]
