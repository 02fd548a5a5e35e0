"""Rotated logs of several servers, whose sessions, transactions, loops and waits go on in the next file."""

import gzip
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from uncork.profile.logs import LogRequest

PREFIX = "%m [%p] %u@%d %a "
_BEGIN = datetime(2026, 1, 1, 8, tzinfo=UTC)


def fleet_log(chance: random.Random, server: int, file: int, entries: int) -> str:
    """Return a rotated file of a server: entries of five sessions, 20 ms apart."""
    lines = []
    for number in range(file * entries, (file + 1) * entries):
        pid, when = 100 + chance.randrange(5), _BEGIN + timedelta(milliseconds=20 * number)
        head = f"{when:%Y-%m-%d %H:%M:%S}.{when.microsecond // 1000:03} UTC [{pid}] u{pid % 2}@d app{server} "
        match chance.randrange(25):
            case 0:
                lines += [
                    f'{head}ERROR:  relation "t{number}" does not exist',
                    f"{head}STATEMENT:  SELECT {number}",
                ]
            case 1:
                lines += [
                    f"{head}LOG:  process {pid} still waiting for ShareLock on transaction 7 after 1000.1 ms",
                    f"{head}DETAIL:  Process holding the lock: {100 + (pid + 1) % 5}. Wait queue: {pid}.",
                    f"{head}STATEMENT:  UPDATE t SET a = {number}",
                ]
            case 2:
                lines.append(
                    f"{head}LOG:  process {pid} acquired ShareLock on transaction 7 after 2000.{number} ms"
                )
            case 3:
                lines.append(f"{head}LOG:  statement: DELETE FROM t WHERE a = {number}")
            case 4:
                lines.append(f"{head}LOG:  duration: {number}.25 ms")
            case 5:
                lines.append(f"{head}LOG:  duration: 0.010 ms  statement: BEGIN")
            case 6:
                lines.append(f"{head}LOG:  duration: 0.100 ms  statement: COMMIT")
            case _:
                lines.append(
                    f"{head}LOG:  duration: 0.{number % 1000:03} ms  statement: "
                    f"SELECT a\n\tFROM t WHERE id = {number}"
                )
    return "\n".join(lines) + "\n"


def write_fleet(folder: Path, files: int, entries: int, seed: int = 23) -> LogRequest:
    """Write rotated files of two servers: plain, and compressed in two ways; return the request for them."""
    chance, paths = random.Random(seed), []
    for number in range(files):
        server, file = number % 2, number // 2
        text = fleet_log(chance, server, file, entries).encode()
        path = folder / f"server{server}-{file:02}.log"
        if number % 3 == 1:
            path = path.with_suffix(".log.gz")
            path.write_bytes(gzip.compress(text, 6))
        elif number % 3 == 2:
            path = path.with_suffix(".log.zst")
            path.write_bytes(pa.compress(text, codec="zstd", asbytes=True))
        else:
            path.write_bytes(text)
        paths.append(path)
    servers = tuple(path.name.partition("-")[0] for path in paths)
    return LogRequest(tuple(paths), prefix=PREFIX, threads=1, servers=servers)
