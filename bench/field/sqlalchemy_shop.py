"""A shop with SQLAlchemy 2 and psycopg 3 behind an ASGI server. shop.py lists its addresses."""

from __future__ import annotations

from shop import Shop
from subject import Place, Service, main


class SqlalchemyShop(Shop):
    """Two workers; each has 40 threads that share a pool of 5 connections."""

    name = "sqlalchemy_shop"
    servers = ("uvicorn", "granian")

    def service(self, place: Place) -> Service:
        """Start the application by uvicorn or granian."""
        program = str(place.folder / "venv" / "bin" / place.server)
        command = [
            program,
            "--host",
            "127.0.0.1",
            "--port",
            str(place.port),
            "--workers",
            self.workers(place),
        ]
        if place.server == "granian":
            command += ["--interface", "asgi"]
        else:
            command += ["--log-level", "warning"]
        return Service([*command, "sqlalchemy_app:app"], "/ready", self.environment(place))


if __name__ == "__main__":
    main(SqlalchemyShop())
