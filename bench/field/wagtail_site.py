"""A site as ``wagtail start`` makes it (Django's ORM), with 200 000 pages and Wagtail's read-only API.

Four settings differ from the template: the database, the API's address, and production's DEBUG and hosts.

Known bottlenecks are listed in README.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

from subject import PINS, Place, Service, Subject, install_python, main

_SETTINGS = """
import os
from urllib.parse import urlsplit
from .base import *
_dsn = urlsplit(os.environ["FIELD_DSN"])
SECRET_KEY, DEBUG, ALLOWED_HOSTS = "field", False, ["127.0.0.1"]
INSTALLED_APPS += ["wagtail.api.v2"]
ROOT_URLCONF = "fieldsite.field_urls"
DATABASES = {{"default": {{"ENGINE": "django.db.backends.postgresql",
    "HOST": _dsn.hostname, "PORT": _dsn.port, "USER": _dsn.username, "PASSWORD": _dsn.password,
    "NAME": _dsn.path.strip("/"), "CONN_MAX_AGE": {keep}}}}}
"""
_URLS = """
from django.urls import path
from wagtail.api.v2.router import WagtailAPIRouter
from wagtail.api.v2.views import PagesAPIViewSet
from .urls import urlpatterns as pages
router = WagtailAPIRouter("field")
router.register_endpoint("pages", PagesAPIViewSet)
urlpatterns = [path("api/v2/", router.urls), *pages]
"""
_SESSION = """
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.test import Client
user = get_user_model().objects.create_superuser("field", "field@localhost", "field")
client = Client()
client.force_login(user)
Session.objects.update(session_key="fieldfieldfieldfieldfieldfieldfi")
"""
_FILL = """
CREATE FUNCTION digit(number int, weight int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', 1 + number / weight % 36, 1) $$;
SELECT setseed(0.5);
CREATE TEMPORARY TABLE home AS SELECT * FROM wagtailcore_page WHERE path = '00010001';
CREATE TEMPORARY TABLE added AS
SELECT 1000 + n AS id, 'Page ' || n || ' about topic' || n % 500 AS title, 'page-' || n AS slug,
       now() - n * interval '3 minutes' AS moment,
       digit(n, 46656) || digit(n, 1296) || digit(n, 36) || digit(n, 1) AS step
FROM generate_series(1, {rows}) AS n;
INSERT INTO wagtailcore_page
SELECT (jsonb_populate_record(home, jsonb_build_object(
  'id', added.id, 'path', '00010001' || step, 'depth', 3, 'numchild', 0, 'title', added.title,
  'draft_title', added.title, 'slug', added.slug, 'url_path', '/home/' || added.slug || '/',
  'translation_key', gen_random_uuid(), 'first_published_at', moment, 'last_published_at', moment,
  'latest_revision_created_at', moment))).*
FROM home, added;
INSERT INTO home_homepage (page_ptr_id) SELECT id FROM added;
UPDATE wagtailcore_page SET numchild = {rows} WHERE path = '00010001';
INSERT INTO wagtailsearch_indexentry
  (object_id, title_norm, autocomplete, title, body, title_text, body_text, content_type_id)
SELECT added.id::text, 1, to_tsvector('simple', added.title), to_tsvector('simple', added.title),
       to_tsvector('simple', 'text of ' || added.title), added.title, 'text', content_type_id
FROM added, home;
"""


class WagtailSite(Subject):
    """Two gunicorn workers with one connection each."""

    name = "wagtail_site"
    plants: ClassVar[dict[str, str]] = {
        "no-index": "drops the index on wagtailcore_page (slug)",
        "one-worker": "one gunicorn worker instead of two",
        "connect": "opens a connection for each request: CONN_MAX_AGE=0, Django's default, instead of 600",
    }

    def install(self, folder: Path) -> None:
        """Install Wagtail and make the site."""
        binaries = install_python(folder, PINS / "wagtail.txt")
        if not (folder / "fieldsite").exists():
            subprocess.run(
                [str(binaries / "wagtail"), "start", "fieldsite"], cwd=folder, check=True, stdout=sys.stderr
            )

    def fill(self, place: Place) -> None:
        """Create the tables, a session of an editor, and the pages."""
        self._configure(place)
        self._manage(place, "migrate", "--verbosity=0")
        self._manage(place, "shell", "-c", _SESSION)
        place.database.run(_FILL.format(rows=place.rows))

    def prepare(self, place: Place) -> None:
        """Drop or create the planted index."""
        if "no-index" in place.plants:
            indexes = place.database.run(
                "SELECT string_agg(quote_ident(indexname), ', ') FROM pg_indexes"
                " WHERE tablename = 'wagtailcore_page' AND indexdef LIKE '%(slug%'"
            )
            place.database.run(f"DROP INDEX IF EXISTS {indexes}" if indexes else "")
        else:
            place.database.run("CREATE INDEX IF NOT EXISTS wagtailcore_page_slug ON wagtailcore_page (slug)")

    def service(self, place: Place) -> Service:
        """Start the site by gunicorn."""
        self._configure(place)
        workers = "1" if "one-worker" in place.plants else "2"
        command = [str(place.folder / "venv" / "bin" / "gunicorn"), "--bind", f"127.0.0.1:{place.port}"]
        command += ["--no-control-socket"]  # by default it is in the home directory
        command += ["--workers", workers, "fieldsite.wsgi"]
        ready = "/api/v2/pages/?limit=1&slug=page-1"
        return Service(command, ready, self._environment(place), place.folder / "fieldsite")

    def urls(self, place: Place) -> dict[str, str]:
        """Return addresses of the API, of the site and of the editor's pages."""
        del place
        return {
            "list": "/api/v2/pages/?limit=20",
            "fields": "/api/v2/pages/?limit=20&fields=*",
            "slug": "/api/v2/pages/?slug=page-4711",
            "search": "/search/?query=topic42",
            "page": "/page-4711/",
            "explorer": "/admin/pages/3/",
        }

    def headers(self, place: Place) -> dict[str, str]:
        """Return the editor's session."""
        del place
        return {"Cookie": "sessionid=fieldfieldfieldfieldfieldfieldfi"}

    def _configure(self, place: Place) -> None:
        site = place.folder / "fieldsite" / "fieldsite"
        keep = 0 if "connect" in place.plants else 600
        (site / "settings" / "field.py").write_text(_SETTINGS.format(keep=keep))
        (site / "field_urls.py").write_text(_URLS)

    @staticmethod
    def _environment(place: Place) -> dict[str, str]:
        return {"FIELD_DSN": place.database.dsn, "DJANGO_SETTINGS_MODULE": "fieldsite.settings.field"}

    def _manage(self, place: Place, *words: str) -> None:
        subprocess.run(
            [str(place.folder / "venv" / "bin" / "python"), "manage.py", *words],
            cwd=place.folder / "fieldsite",
            env=os.environ | self._environment(place),
            check=True,
            stdout=sys.stderr,
        )


if __name__ == "__main__":
    main(WagtailSite())
