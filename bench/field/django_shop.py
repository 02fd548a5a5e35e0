"""A shop with Django's ORM and psycopg 3 behind gunicorn. shop.py lists its addresses."""

from __future__ import annotations

from shop import Shop
from subject import Place, Service, main


class DjangoShop(Shop):
    """Two workers with one connection each, or with 8 threads and a connection for each thread."""

    name = "django_shop"
    servers = ("gunicorn", "gunicorn-threads")

    def service(self, place: Place) -> Service:
        """Start the application by gunicorn, with sync workers or threads."""
        command = [str(place.folder / "venv" / "bin" / "gunicorn"), "--bind", f"127.0.0.1:{place.port}"]
        command += ["--no-control-socket"]  # by default it is in the home directory
        command += ["--workers", self.workers(place)]
        if place.server == "gunicorn-threads":
            command += ["--threads", "8"]
        return Service([*command, "django_app:application"], "/ready", self.environment(place))


if __name__ == "__main__":
    main(DjangoShop())
