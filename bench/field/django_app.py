"""The Django shop as a WSGI application in one module: settings, models and views."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from random import randrange
from typing import Any
from urllib.parse import urlsplit

import django
from django.conf import settings
from shop import ADDRESSES, PAGE, compute, tagged

_dsn = urlsplit(os.environ["FIELD_DSN"])
settings.configure(
    SECRET_KEY="field",  # noqa: S106 -- of a service on loopback
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": _dsn.hostname,
            "PORT": _dsn.port,
            "USER": _dsn.username,
            "PASSWORD": _dsn.password,
            "NAME": _dsn.path.strip("/"),
            "CONN_MAX_AGE": 600,
        }
    },
)
django.setup()

from django.core.handlers.wsgi import WSGIHandler  # noqa: E402 -- Django requires its settings first
from django.db import connection, models, transaction  # noqa: E402
from django.http import HttpRequest, JsonResponse  # noqa: E402
from django.urls import path  # noqa: E402

_rows = 200_000


class Customer(models.Model):
    """Who ordered."""

    name = models.TextField()

    class Meta:
        """The table of shop.sql."""

        app_label, db_table, managed = "shop", "customer", False


class Order(models.Model):
    """An order with its lazily loaded relations."""

    customer = models.ForeignKey(Customer, models.DO_NOTHING)
    reference = models.TextField()

    class Meta:
        """The table of shop.sql."""

        app_label, db_table, managed = "shop", "orders", False


class Item(models.Model):
    """A line of an order."""

    order = models.ForeignKey(Order, models.DO_NOTHING, related_name="items")
    product = models.TextField()
    price = models.IntegerField()

    class Meta:
        """The table of shop.sql."""

        app_label, db_table, managed = "shop", "item", False


class Shipment(models.Model):
    """How an order travels."""

    order = models.OneToOneField(Order, models.DO_NOTHING, related_name="shipment")
    carrier = models.TextField()

    class Meta:
        """The table of shop.sql."""

        app_label, db_table, managed = "shop", "shipment", False


class Counter(models.Model):
    """A row that every request of /hot changes."""

    hits = models.BigIntegerField()

    class Meta:
        """The table of shop.sql."""

        app_label, db_table, managed = "shop", "counter", False


def _page(relations: int, orders: Any = Order.objects) -> list[dict[str, Any]]:
    first = randrange(1, _rows - 2 * PAGE)
    shown = []
    for order in orders.filter(id__gte=first).order_by("id")[:PAGE]:
        row: dict[str, Any] = {"id": order.id, "customer": order.customer.name}
        if relations > 1:
            row["items"] = [item.product for item in order.items.all()]
        if relations > 2:
            row["carrier"] = order.shipment.carrier
        shown.append(row)
    return shown


def _joined() -> Any:
    return _page(3, Order.objects.prefetch_related("customer", "items", "shipment"))


def _point() -> Any:
    return Order.objects.get(id=randrange(1, _rows)).reference


def _scan() -> Any:
    return list(Order.objects.filter(reference=f"none{randrange(1000)}").values_list("id", flat=True))


def _hot() -> Any:
    Counter.objects.filter(id=1).update(hits=models.F("hits") + 1)
    time.sleep(0.003)


def _compute() -> Any:
    _point()
    return compute()


def _sleep() -> Any:
    _point()
    time.sleep(0.03)


_ACTIONS: dict[str, Callable[[], Any]] = {
    "/one": lambda: _page(1),
    "/two": lambda: _page(2),
    "/three": lambda: _page(3),
    "/joined": _joined,
    "/point": _point,
    "/scan": _scan,
    "/hot": _hot,
    "/compute": _compute,
    "/sleep": _sleep,
    "/idle": _sleep,
}
_AUTOCOMMIT = {"/compute", "/sleep", "/point"}
"""Django's default; every other address runs in one transaction, as with ATOMIC_REQUESTS."""


def _answer(request: HttpRequest) -> JsonResponse:
    address = request.path
    separate = address.endswith("/autocommit") or address in _AUTOCOMMIT
    with ExitStack() as stack:
        stack.enter_context(nullcontext() if separate else transaction.atomic())
        if os.environ.get("FIELD_TAGS"):
            stack.enter_context(
                connection.execute_wrapper(
                    lambda execute, sql, parameters, many, context: execute(
                        tagged(sql, address), parameters, many, context
                    )
                )
            )
        found = _ACTIONS[address.removesuffix("/autocommit")]()
    return JsonResponse(found, safe=False)


def _ready(request: HttpRequest) -> JsonResponse:
    del request
    return JsonResponse("ready", safe=False)


urlpatterns = [path("ready", _ready), *(path(address.lstrip("/"), _answer) for address in ADDRESSES)]
application = WSGIHandler()
