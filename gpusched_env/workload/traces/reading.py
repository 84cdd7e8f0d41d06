"""Files of requests in any of the known formats, gzipped or not.

A format is recognised by its columns (:data:`~gpusched_env.workload.traces.tables.TABLES`) or, of a JSON document, by
its keys (:mod:`gpusched_env.workload.traces.documents`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpusched_env.errors import InputError
from gpusched_env.reading import read_bytes, unzipped
from gpusched_env.workload.traces.documents import read_document
from gpusched_env.workload.traces.requests import Requests
from gpusched_env.workload.traces.tables import is_request, read_lines, read_objects

MOST_BYTES: Final = 2**28
"""Of a file, unzipped."""


def read_requests(path: Path, task: str | None = None) -> Requests:
    """The requests in a file; ``task`` names one of several loads in it.

    Raises:
        InputError: it cannot be read, is empty, too long or of no known format; a time is no number, negative, beyond
            three years or before that of the request above it; a length is no number of tokens. Names the file, and
            the line and column.
    """
    where = str(path)
    data = unzipped(read_bytes(path), where, MOST_BYTES)
    text = data.lstrip()
    if not text or len(data) > MOST_BYTES:
        raise InputError(f"{where}: {'is empty' if not text else f'more than {MOST_BYTES} bytes; cut it'}")
    objects = is_request(text.partition(b"\n")[0])
    if text[:1] in (b"[", b"{") and not objects:
        return read_document(data, where, task)
    if task is not None:
        raise InputError(f"{where}: has no tasks; leave task out, which is {task!r}")
    return read_objects(data, where) if objects else read_lines(data, where)
