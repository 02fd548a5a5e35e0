"""A small shop behind PostgreSQL, with routes whose bottleneck is known: a real service for tests.

``python -m fakes.shop_service PORT`` serves the database SHOP_DSN on 127.0.0.1 with a pool of SHOP_POOL
connections. With SHOP_TAGS=1 every statement ends with a comment that names its route, and the trace of its
request (traceparent), as sqlcommenter writes it.

- ``/orders/transaction`` fetches customer and product of each order one by one, in one transaction (N+1);
- ``/orders/autocommit`` does the same with a transaction for each statement;
- ``/orders/one`` fetches only the product of each order;
- ``/orders/joined`` fetches the same orders in one statement;
- ``/search`` counts products by a column without an index;
- ``/visit`` counts visits in one row, and holds its lock for some milliseconds;
- ``/product/{number}`` fetches one product by its key;
- ``/compute`` computes in the service, after one short statement.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import uvicorn
from psycopg_pool import ConnectionPool
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

ORDERS = 20
"""Orders on a page."""
SCHEMA = """
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE products (id int PRIMARY KEY, name text NOT NULL, supplier int NOT NULL);
CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, product int NOT NULL);
CREATE TABLE visits (id int PRIMARY KEY, many bigint NOT NULL);
INSERT INTO customers SELECT n, 'customer ' || n FROM generate_series(1, 1000) AS n;
INSERT INTO products SELECT n, 'product ' || n, n % 5000 FROM generate_series(1, 200000) AS n;
INSERT INTO orders SELECT n, 1 + n % 1000, 1 + n * 7 % 200000 FROM generate_series(1, 200000) AS n;
INSERT INTO visits VALUES (1, 0);
ANALYZE;
"""

Ask = Callable[..., list[tuple[Any, ...]]]
_ORDERS = "SELECT id, customer, product FROM orders WHERE id BETWEEN %s AND %s"
_CUSTOMER = "SELECT name FROM customers WHERE id = %s"
_PRODUCT = "SELECT name FROM products WHERE id = %s"
_JOINED = (
    "SELECT o.id, c.name, p.name FROM orders AS o JOIN customers AS c ON c.id = o.customer "
    "JOIN products AS p ON p.id = o.product WHERE o.id BETWEEN %s AND %s"
)


class Shop:
    """The routes, over one pool of connections."""

    def __init__(self, pool: ConnectionPool, *, tags: bool) -> None:
        self.pool = pool
        self.tags = tags

    @contextmanager
    def asking(self, request: Request, route: str, *, autocommit: bool = False) -> Iterator[Ask]:
        """Yield a function that executes a statement, in one transaction or in one for each statement."""
        tag = _tag(route, request.headers.get("traceparent")) if self.tags else ""
        with self.pool.connection() as connection:
            connection.autocommit = autocommit

            def ask(query: str, *values: object) -> list[tuple[Any, ...]]:
                cursor = connection.execute((query + tag.replace("%", "%%")).encode(), values)
                return cursor.fetchall() if cursor.description else []

            yield ask
            if not autocommit:
                connection.commit()
                connection.autocommit = True

    def orders_in_transaction(self, request: Request) -> JSONResponse:
        return self._orders(request, "/orders/transaction", autocommit=False)

    def orders_autocommit(self, request: Request) -> JSONResponse:
        return self._orders(request, "/orders/autocommit", autocommit=True)

    def orders_one(self, request: Request) -> JSONResponse:
        with self.asking(request, "/orders/one", autocommit=True) as ask:
            return JSONResponse([ask(_PRODUCT, product)[0] for _, _, product in ask(_ORDERS, 1, ORDERS)])

    def orders_joined(self, request: Request) -> JSONResponse:
        with self.asking(request, "/orders/joined", autocommit=True) as ask:
            return JSONResponse(ask(_JOINED, 1, ORDERS))

    def search(self, request: Request) -> JSONResponse:
        with self.asking(request, "/search", autocommit=True) as ask:
            return JSONResponse(ask("SELECT count(*) FROM products WHERE supplier = %s", 7))

    def visit(self, request: Request) -> JSONResponse:
        with self.asking(request, "/visit") as ask:
            ask("UPDATE visits SET many = many + 1 WHERE id = 1")
            ask("SELECT pg_sleep(0.005)")
            return JSONResponse({})

    def product(self, request: Request) -> JSONResponse:
        with self.asking(request, "/product/{number}", autocommit=True) as ask:
            return JSONResponse(ask(_PRODUCT, int(request.path_params["number"])))

    def compute(self, request: Request) -> JSONResponse:
        with self.asking(request, "/compute", autocommit=True) as ask:
            (name,) = ask(_PRODUCT, 1)[0]
        return JSONResponse({name: digest(60_000)})

    def _orders(self, request: Request, route: str, *, autocommit: bool) -> JSONResponse:
        with self.asking(request, route, autocommit=autocommit) as ask:
            found = [
                (number, ask(_CUSTOMER, customer)[0], ask(_PRODUCT, product)[0])
                for number, customer, product in ask(_ORDERS, 1, ORDERS)
            ]
            return JSONResponse(found)


def _tag(route: str, traceparent: str | None) -> str:
    """Return the comment of sqlcommenter; with the request's trace if it has one."""
    trace = f",traceparent='{traceparent}'" if traceparent else ""
    return f" /*db_driver='psycopg',route='{route.replace('/', '%2F')}'{trace}*/"


def digest(rounds: int) -> int:
    """Compute for some milliseconds."""
    total = 0
    for number in range(rounds):
        total = (total * 31 + number) % 65_521
    return total


def application(shop: Shop) -> Starlette:
    """Return the service."""
    routes = {
        "/orders/transaction": shop.orders_in_transaction,
        "/orders/autocommit": shop.orders_autocommit,
        "/orders/one": shop.orders_one,
        "/orders/joined": shop.orders_joined,
        "/search": shop.search,
        "/visit": shop.visit,
        "/product/{number}": shop.product,
        "/compute": shop.compute,
    }
    return Starlette(routes=[Route(path, answer) for path, answer in routes.items()])


def fill(dsn: str) -> None:
    """Create the shop's tables with 200 000 products and orders."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in SCHEMA.strip().split(";\n"):
            connection.execute(statement.encode())


def main() -> None:
    """Serve until the process is ended."""
    size = int(os.environ.get("SHOP_POOL", "20"))
    with ConnectionPool(os.environ["SHOP_DSN"], min_size=size, max_size=size, timeout=60) as pool:
        pool.wait()
        shop = application(Shop(pool, tags=os.environ.get("SHOP_TAGS") == "1"))
        server = uvicorn.Server(
            uvicorn.Config(shop, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", lifespan="off")
        )
        server.run()


if __name__ == "__main__":
    main()
