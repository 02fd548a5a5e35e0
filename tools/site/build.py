"""Build the site from the repository's Markdown: `make site`.

What git tracks goes in, with the generated reference; a folder of pages comes out, which a browser opens
without a server. The pages lie as in the repository, so links between them hold; files that they link to are
copied too. Real reports in ``build/site/reports`` (`tools/site/reports.py` makes them) become the gallery,
and part of the cases' pages.
"""

from __future__ import annotations

import argparse
import html
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SHIM: Final = Path(__file__).with_name("iframe-worker.js")
BUILD: Final = ROOT / "build" / "site"
REPORTS: Final = BUILD / "reports"
GALLERY: Final = "gallery.md"
_CASES: Final = "python/uncork/cases"
_LINK: Final = re.compile(r"\]\(<?([^)\s>#]+)(?:#[^)\s>]*)?>?\)")
_TITLE: Final = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_GUIDES: Final[Mapping[str, str]] = {
    "Find": "database logs service cpu machine advise",
    "Prove": "cure capture new-experiment settings existing-server services engines batching several-hosts",
    "Load": "load http load-from-many-machines observer-cost",
    "Keep it fixed": "guard guard-sides ci pytest compare history import",
    "Runs": "store serve mcp export python",
}
_SECTIONS: Final[Mapping[tuple[str, ...], Sequence[str]]] = {
    ("Start",): ("README.md", "docs/tutorial/*.md"),
    **{
        ("Guides", name): [f"docs/guides/{one}.md" for one in guides.split()]
        for name, guides in _GUIDES.items()
    },
    ("Cases",): (f"{_CASES}/*/README.md",),
    ("Gallery",): (GALLERY,),
    ("Reference",): ("docs/reference/*.md",),
    ("Concepts",): ("docs/concepts/*.md",),
    ("Figures",): ("bench/*.md", "bench/*/README.md"),
    ("Development",): (
        "CONTRIBUTING.md",
        "ARCHITECTURE.md",
        "STYLE.md",
        "CHANGELOG.md",
        "docs/decisions/*.md",
        "tests/fixtures/*/README.md",
    ),
}
"""The sections of the site with their pages, in this order; some lie within another."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report that uncork wrote: its file's name, and the title of its page."""

    name: str
    title: str


def main() -> int:
    """Build the site, and print where it is; return the exit status of Zensical."""
    argparse.ArgumentParser(description="Build the site from the repository's Markdown.").parse_args()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607
    generate = [sys.executable, str(ROOT / "tools" / "generate.py"), "--reference"]
    subprocess.run(generate, capture_output=True, check=True)
    reference = (path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/reference/*.md"))
    tracked = sorted({*listed.stdout.split("\0"), *reference})
    source = BUILD / "source"
    shutil.rmtree(source, ignore_errors=True)
    reports = list(found_reports(REPORTS))
    write_source(source, ROOT, tracked, reports)
    config = BUILD / "mkdocs.yml"
    config.write_text(config_text(sections_of([*tracked, GALLERY])), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", config.name]
    plain = os.environ | {"NO_COLOR": "1"}
    done = subprocess.run(command, cwd=BUILD, env=plain, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout or done.stderr, file=sys.stderr)  # the errors end with a stack trace
    else:
        print(f"site: {BUILD / 'html' / 'index.html'}")
    return done.returncode


# ---- the source ----


def write_source(source: Path, root: Path, tracked: Sequence[str], reports: Sequence[Report]) -> None:
    """Write the pages, what they link to, and the reports, to a folder."""
    known = set(tracked)
    pages = [page for of_section in sections_of(tracked).values() for page in of_section]
    for name in {*pages, *linked(root, pages, known)}:
        place = source / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, place)
    shutil.copyfile(SHIM, source / SHIM.name)
    for report in reports:
        (source / "reports").mkdir(exist_ok=True)
        shutil.copyfile(REPORTS / report.name, source / "reports" / report.name)
    (source / GALLERY).write_text(gallery(reports), encoding="utf-8")
    for report in reports:
        page = source / _CASES / report.name.removeprefix("case-").removesuffix(".html") / "README.md"
        if report.name.startswith("case-") and page.is_file():
            up = "../" * (len(PurePosixPath(_CASES).parts) + 1)
            embedded = f"\n\n## The report of a run\n\n{shown(f'{up}reports/{report.name}', report.title)}"
            page.write_text(page.read_text(encoding="utf-8") + embedded, encoding="utf-8")


def sections_of(names: Iterable[str]) -> dict[tuple[str, ...], list[str]]:
    """Return the pages of each section, in its order: the Markdown files that its patterns choose."""
    every = sorted(name for name in names if name.endswith(".md"))
    return {
        section: [
            name
            for pattern in patterns
            for name in every
            if PurePosixPath(name).match(pattern) and name.count("/") == pattern.count("/")
        ]
        for section, patterns in _SECTIONS.items()
    }


def linked(root: Path, pages: Iterable[str], known: set[str]) -> Iterator[str]:
    """Yield the tracked files that pages link to and that are no pages."""
    for page in pages:
        text = (root / page).read_text(encoding="utf-8")
        for target in _LINK.findall(text):
            path = _normal(PurePosixPath(page).parent / target)
            if path in known:
                yield path


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


# ---- reports ----


def found_reports(folder: Path) -> Iterator[Report]:
    """Yield the reports in a folder, by name."""
    for path in sorted(folder.glob("*.html")):
        title = _TITLE.search(path.read_text(encoding="utf-8"))
        yield Report(path.name, html.unescape(title[1]).strip() if title else path.stem)


def gallery(reports: Sequence[Report]) -> str:
    """Return the page that shows all reports."""
    lines = ["# Gallery", ""]
    if not reports:
        lines += ["`python tools/site/reports.py` makes the reports that this page shows.", ""]
        return "\n".join(lines)
    lines += ["uncork wrote these pages on a small machine. Each is one file that needs no network.", ""]
    for one in reports:
        lines += [f"## {one.title}", "", shown(f"reports/{one.name}", one.title), ""]
    return "\n".join(lines)


def shown(address: str, title: str) -> str:
    """Return the Markdown that links to a report, and embeds it."""
    name = html.escape(title, quote=True)
    frame = f'<iframe src="{address}" title="{name}" loading="lazy" style="width:100%;height:40rem"></iframe>'
    return f'<a href="{address}">Open the page alone</a>\n\n{frame}\n'


# ---- the configuration ----


def config_text(sections: Mapping[tuple[str, ...], Sequence[str]]) -> str:
    """Return the configuration of Zensical: the repository's, with the folders and the pages."""
    lines = ["INHERIT: ../../mkdocs.yml", "docs_dir: source", "site_dir: html", "nav:"]
    before: tuple[str, ...] = ()
    for names, pages in sections.items():
        for depth, name in enumerate(names):
            if names[: depth + 1] != before[: depth + 1]:
                lines.append(f"{'    ' * depth}  - {name}:")
        lines += [f"{'    ' * len(names)}  - {page}" for page in pages]
        before = names
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
