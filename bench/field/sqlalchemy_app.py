"""The SQLAlchemy shop as an ASGI application: synchronous handlers in threads, one pool for each process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextvars import ContextVar
from random import randrange
from typing import Any

from shop import ADDRESSES, PAGE, compute, tagged
from sqlalchemy import ForeignKey, create_engine, event, select, text
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    joinedload,
    mapped_column,
    relationship,
    selectinload,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

_address: ContextVar[str] = ContextVar("address")
_engine = create_engine(
    os.environ["FIELD_DSN"].replace("postgresql://", "postgresql+psycopg://"),
    pool_size=int(os.environ.get("FIELD_POOL", "5")),
    max_overflow=0,
    pool_timeout=60,
)
_autocommit = _engine.execution_options(isolation_level="AUTOCOMMIT")
_rows = 200_000

if os.environ.get("FIELD_TAGS"):

    @event.listens_for(_engine, "before_cursor_execute", retval=True)
    def _tag(  # noqa: ANN202 -- SQLAlchemy's signature
        connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
    ):
        del connection, cursor, context, many
        return tagged(statement, _address.get("")), parameters


class Base(DeclarativeBase):
    """The tables of shop.sql."""


class Customer(Base):
    """Who ordered."""

    __tablename__ = "customer"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class Item(Base):
    """A line of an order."""

    __tablename__ = "item"
    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[int] = mapped_column(ForeignKey("orders.id"))
    product: Mapped[str]
    price: Mapped[int]


class Shipment(Base):
    """How an order travels."""

    __tablename__ = "shipment"
    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[int] = mapped_column(ForeignKey("orders.id"))
    carrier: Mapped[str]


class Order(Base):
    """An order with its lazily loaded relations."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey("customer.id"))
    reference: Mapped[str]
    customer: Mapped[Customer] = relationship()
    items: Mapped[list[Item]] = relationship()
    shipment: Mapped[Shipment] = relationship(uselist=False)


def _page(session: Session, relations: int, *options: Any) -> list[dict[str, Any]]:
    first = randrange(1, _rows - 2 * PAGE)
    query = select(Order).where(Order.id >= first).order_by(Order.id).limit(PAGE).options(*options)
    shown = []
    for order in session.scalars(query):
        row: dict[str, Any] = {"id": order.id, "customer": order.customer.name}
        if relations > 1:
            row["items"] = [item.product for item in order.items]
        if relations > 2:
            row["carrier"] = order.shipment.carrier
        shown.append(row)
    return shown


def _joined(session: Session) -> Any:
    return _page(
        session, 3, joinedload(Order.customer), selectinload(Order.items), selectinload(Order.shipment)
    )


def _point(session: Session) -> Any:
    found = session.get(Order, randrange(1, _rows))
    return found and found.reference


def _scan(session: Session) -> Any:
    return session.scalar(select(Order.id).where(Order.reference == f"none{randrange(1000)}"))


def _hot(session: Session) -> Any:
    session.execute(text("UPDATE counter SET hits = hits + 1 WHERE id = 1"))
    time.sleep(0.003)
    session.commit()


def _compute(session: Session) -> Any:
    _point(session)
    session.close()
    return compute()


def _sleep(session: Session) -> Any:
    _point(session)
    session.close()
    time.sleep(0.03)


def _idle(session: Session) -> Any:
    _point(session)
    time.sleep(0.03)
    session.commit()


_ACTIONS: dict[str, Callable[[Session], Any]] = {
    "/one": lambda session: _page(session, 1),
    "/two": lambda session: _page(session, 2),
    "/three": lambda session: _page(session, 3),
    "/joined": _joined,
    "/point": _point,
    "/scan": _scan,
    "/hot": _hot,
    "/compute": _compute,
    "/sleep": _sleep,
    "/idle": _idle,
}


def _answer(request: Request) -> JSONResponse:
    address = request.url.path
    _address.set(address)
    engine = _autocommit if address.endswith("/autocommit") else _engine
    with Session(engine) as session:
        return JSONResponse(_ACTIONS[address.removesuffix("/autocommit")](session))


def _ready(request: Request) -> JSONResponse:
    del request
    return JSONResponse("ready")


app = Starlette(routes=[Route("/ready", _ready), *(Route(address, _answer) for address in ADDRESSES)])
