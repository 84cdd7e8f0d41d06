"""Files that somebody has damaged or forged: seeded mutations, of bytes and of what they mean."""

from __future__ import annotations

import copy
import csv
import gzip
import io
import json
import random
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**30, 0.5, -0.0, 1e-300, 1e12, 1.1e12,
    1e18, 1e300, -1e300, float("nan"), float("inf"), -float("inf"), "", " ", "0", "x" * 200_000, "\x00", "\x1b[31m",
    "\ud800", "../../etc/passwd", "/dev/zero", "ä\u202e", [], {}, [[]], [None], {"": None}, [0] * 5000,
)  # fmt: skip
"""What no field expects, or few."""
TOKENS = (b"NaN", b"1e999", b"-Infinity", b"9" * 5000, b"[" * 100_000, b'{"a":' * 20_000, b"\xff\xfe", b"\x00", b"")
"""What no value is written as."""
Mutate = Callable[[bytes, random.Random], bytes]


def mutated(name: str, content: bytes, dice: random.Random) -> bytes:
    """Of a file of this name and content, which may be anything afterwards."""
    if dice.random() < 0.25:
        return _bytes(content, dice)
    suffixes = name.removesuffix(".gz").rpartition(".")[2]
    packed = content[:2] == b"\x1f\x8b"
    plain = gzip.decompress(content) if packed else content
    found = KINDS.get(suffixes, _bytes)(plain, dice)
    return gzip.compress(found, 1) if packed and dice.random() < 0.9 else found


def _bytes(content: bytes, dice: random.Random) -> bytes:
    if not content:
        return b"\x00"
    first, last = sorted(dice.choices(range(len(content) + 1), k=2))
    match dice.randrange(8):
        case 0:
            return content[:first]
        case 1:
            return content[:first] + content[last:]
        case 2:
            return content[:last] + content[first:]
        case 3:
            return content[:first] + dice.choice(TOKENS) + content[first:]
        case 4:
            return content[:first] + dice.randbytes(min(last - first, 64)) + content[last:]
        case 5:
            return dice.choice(
                (b"", gzip.compress(content), b"\xef\xbb\xbf" + content, content.decode("latin-1").encode("utf-16"))
            )
        case 6:
            return gzip.compress(bytes(1 << 24)) + content
        case _:
            flipped = bytearray(content)
            for _ in range(dice.randint(1, 8)):
                flipped[dice.randrange(len(flipped))] ^= 1 << dice.randrange(8)
            return bytes(flipped)


def _tree(value: Any, dice: random.Random) -> Any:
    """With one or a few of its parts replaced, removed, doubled or swapped."""
    for _ in range(dice.choice((1, 1, 1, 2, 5))):
        places = list(_places(value))
        if not places:
            return dice.choice(HOSTILE)
        holder, key = dice.choice(places)
        match dice.randrange(8):
            case 0:
                del holder[key]
            case 1:
                other, theirs = dice.choice(places)
                holder[key] = copy.deepcopy(other[theirs])
            case 2 if isinstance(holder, list):
                holder.insert(key, holder[key])
            case 2:
                holder[dice.choice(("unknown", "", "name", "\ud800"))] = copy.deepcopy(holder[key])
            case 3 if isinstance(holder[key], int | float):
                holder[key] *= dice.choice((-1, 0, 1e-9, 1e3, 1e9, 10**18))
            case 4 if isinstance(holder, list):
                holder.extend([holder[key]] * 500)
            case 5 if isinstance(holder, list):
                dice.shuffle(holder)
            case _:
                holder[key] = copy.deepcopy(dice.choice(HOSTILE))
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    inner = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for key, below in inner:
        yield value, key
        yield from _places(below)


def _json(content: bytes, dice: random.Random) -> bytes:
    text = json.dumps(_tree(json.loads(content), dice)).encode()
    if dice.random() < 0.1:
        place = dice.choice([number for number, byte in enumerate(text) if byte in b":,["] or [0])
        return text[: place + 1] + dice.choice(TOKENS) + text[place + 1 :]
    return text


def _lines(content: bytes, dice: random.Random) -> bytes:
    lines = content.splitlines() or [b"{}"]
    number = dice.randrange(len(lines))
    match dice.randrange(4):
        case 0:
            lines.insert(number, dice.choice(lines))
        case 1:
            dice.shuffle(lines)
        case _:
            lines[number] = _json(lines[number], dice)
    return b"\n".join(lines)


def _yaml(content: bytes, dice: random.Random) -> bytes:
    if dice.random() < 0.1:
        return b"a: &a [x]\n" + b"".join(
            b"b%d: &b%d [*%s]\n" % (k, k, (b"b%d" % (k - 1)) if k else b"a") for k in range(50)
        )
    tree = _tree(yaml.safe_load(content), dice)
    return yaml.dump(json.loads(json.dumps(tree)), allow_unicode=True).encode("utf-8", "surrogatepass")


def _csv(content: bytes, dice: random.Random) -> bytes:
    rows = [list(row) for row in csv.reader(io.StringIO(content.decode()))]
    for _ in range(dice.choice((1, 1, 3))):
        row = dice.choice(rows)
        match dice.randrange(4):
            case 0 if row:
                del row[dice.randrange(len(row))]
            case 1:
                rows.append(list(row))
            case _ if row:
                row[dice.randrange(len(row))] = str(dice.choice(HOSTILE))
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode("utf-8", "surrogatepass")


def _archive(content: bytes, dice: random.Random) -> bytes:
    """One member's content, with its checksum right."""
    whole = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as new:
        chosen = dice.choice(old.namelist())
        for name in old.namelist():
            data = old.read(name)
            if name == chosen:
                if dice.random() < 0.1:
                    continue
                data = _member(data, dice)
            new.writestr(name, data)
    return whole.getvalue()


def _member(data: bytes, dice: random.Random) -> bytes:
    """An array of NumPy: of JSON, or of numbers, or its head."""
    head = data.find(b'{"')
    if head > 0 and dice.random() < 0.8:
        text = _json(data[head:], dice)
        # The length that the head of the array states has as many digits, or the array is cut.
        return data[:head].replace(str(len(data) - head).encode(), str(len(text)).encode()[:8]) + text
    match dice.randrange(3):
        case 0:
            return data.replace(b"<f4", dice.choice((b"<f8", b"<i4", b"|O8", b"<U9")), 1)
        case 1:
            return data.replace(b"'shape': (", b"'shape': (" + str(dice.choice((9, 10**6, 10**13))).encode() + b", ", 1)
        case _:
            return data[: len(data) // 2] + b"\xff" * (len(data) - len(data) // 2)


def _database(content: bytes, dice: random.Random) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "export.sqlite")
        path.write_bytes(content)
        database = sqlite3.connect(path)
        for _ in range(dice.choice((1, 1, 3))):
            try:
                _change(database, dice)
            except (sqlite3.Error, OverflowError, UnicodeError):
                continue
        database.commit()
        database.close()
        return path.read_bytes()


def _change(database: sqlite3.Connection, dice: random.Random) -> None:
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    table = dice.choice(tables)
    column = dice.choice([row[1] for row in database.execute(f"PRAGMA table_info({table})")])
    match dice.randrange(6):
        case 0:
            database.execute(f"DROP TABLE {table}")
        case 1:
            database.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        case 2:
            database.execute(f"DELETE FROM {table} WHERE rowid % 2 = 0")
        case 3:
            database.execute(f"INSERT INTO {table} SELECT * FROM {table}")
        case _:
            value = dice.choice((*HOSTILE[:31], b"\xff"))
            kept = value if not isinstance(value, list | dict) else str(value)
            database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid % ? = 0", (kept, dice.randint(1, 3)))


def _text(content: bytes, dice: random.Random) -> bytes:
    words = content.split(b" ")
    words[dice.randrange(len(words))] = str(dice.choice(HOSTILE)).encode("utf-8", "surrogatepass")
    return b" ".join(words)


KINDS: dict[str, Mutate] = {
    "json": _json, "jsonl": _lines, "yaml": _yaml, "csv": _csv, "npz": _archive, "zip": _archive, "sqlite": _database,
    "mtx": _text, "gr": _text,
}  # fmt: skip
"""By suffix; of others bytes are changed."""
