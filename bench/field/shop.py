"""What the SQLAlchemy shop and the Django shop have in common: their tables, plants and addresses.

Each address has one known cost, so that what uncork says about it can be checked:

=====================  =================================================================================
/one, /two, /three     20 orders, then for each order one, two or three lazily loaded relations, which
                       alternate; all in one transaction: 1 + 20, 1 + 40, 1 + 60 statements
/one/autocommit, ...   the same, with each statement in a transaction of its own
/joined                the same rows as /three by 3 (SQLAlchemy) or 4 (Django) statements: healthy
/point                 one order by primary key: healthy
/scan                  one order by its reference, which has no index: a sequential scan
/hot                   adds one to the same row, and works for 3 ms before it commits: a row lock
/compute               one statement by primary key, then about 10 ms of computing in Python
/sleep                 one statement by primary key, then 30 ms of sleep: a slow service elsewhere
/idle                  begins a transaction, one statement, 30 ms of sleep, commit: idle in transaction
=====================  =================================================================================

With FIELD_TAGS=1 in the service's environment, which `start --plant tags` sets, every statement ends with
/*route='/two'*/. The tag names the address that sent the statement: ground truth for joins without it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar

from subject import HERE, Place, Subject, install_python

ADDRESSES = (
    "/one", "/two", "/three", "/one/autocommit", "/two/autocommit", "/three/autocommit",
    "/joined", "/point", "/scan", "/hot", "/compute", "/sleep", "/idle",
)  # fmt: skip
PAGE = 20
"""Orders on a page."""


class Shop(Subject):
    """A shop whose tables shop.sql creates."""

    plants: ClassVar[dict[str, str]] = {
        "tags": "appends the address to each statement, as in sqlcommenter",
        "one-worker": "one worker process instead of two",
        "one-connection": "a pool of one connection for each worker (SQLAlchemy only)",
        "no-index": "drops the index on item (order_id)",
    }

    def install(self, folder: Path) -> None:
        """Install the pinned packages of both shops."""
        install_python(folder, HERE / "requirements.txt")

    def fill(self, place: Place) -> None:
        """Create and fill the tables."""
        place.database.run((HERE / "shop.sql").read_text().replace(":rows", str(place.rows)))

    def prepare(self, place: Place) -> None:
        """Drop or create the index."""
        if "no-index" in place.plants:
            place.database.run("DROP INDEX IF EXISTS item_order")
        else:
            place.database.run("CREATE INDEX IF NOT EXISTS item_order ON item (order_id)")

    def urls(self, place: Place) -> dict[str, str]:
        """Return every address by its name."""
        del place
        return {address.strip("/").replace("/", "-"): address for address in ADDRESSES}

    @staticmethod
    def environment(place: Place) -> dict[str, str]:
        """Return the settings that the applications read."""
        settings = {"FIELD_DSN": place.database.dsn, "PYTHONPATH": str(HERE)}
        if "tags" in place.plants:
            settings["FIELD_TAGS"] = "1"
        if "one-connection" in place.plants:
            settings["FIELD_POOL"] = "1"
        return settings

    @staticmethod
    def workers(place: Place) -> str:
        """Return how many worker processes serve requests."""
        return "1" if "one-worker" in place.plants else "2"


def compute() -> str:
    """Use the processor for about 10 ms."""
    digest = b""
    for _ in range(12_000):
        digest = hashlib.sha256(digest).digest()
    return digest.hex()


def tagged(sql: str, address: str) -> str:
    """Return a statement with its address appended, as sqlcommenter does."""
    return f"{sql} /*route='{address}'*/"
