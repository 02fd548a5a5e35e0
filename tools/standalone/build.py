"""Build the standalone archive: uncork with its own Python, for Linux with glibc (`make standalone`).

The packages are copied from the environment that runs this program, which pip filled from pinned hashes; the
interpreter and the library are those that the environment was made from. Nothing is fetched.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Final

from contents import (
    Part,
    glibc_needed,
    is_needed_file,
    is_needed_library,
    library_part,
    licence_of,
    packages_to_run,
    third_party_page,
)

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"


def main() -> None:
    """Write the archive beside the given wheel; print its path."""
    (wheel,) = sys.argv[1:]
    out = Path(wheel).resolve().parent
    version = re.findall(r"^uncork-([^-]+)-", Path(wheel).name)[0]
    name = f"uncork-{version}-linux-{platform.machine()}"
    folder = ROOT / "build" / "standalone" / name
    shutil.rmtree(folder.parent, ignore_errors=True)
    for below in ("bin", "lib", "licences"):
        (folder / below).mkdir(parents=True)

    library = _python_library()
    modules = folder / "lib" / f"python{VERSION}"
    stdlib = Path(sysconfig.get_path("stdlib"))
    _copy_tree(stdlib, modules)
    shutil.copy(library, folder / "lib")
    is_debian = "dist-packages" in (stdlib / "site.py").read_text()
    packages = modules / ("dist-packages" if is_debian else "site-packages")
    parts = _copy_packages(packages)
    with zipfile.ZipFile(wheel) as content:
        content.extractall(packages)  # noqa: S202 -- our own wheel
    libraries = _copy_libraries(folder)
    _compile_programs(folder, libraries)
    _strip(folder / "lib" / library.name)
    _precompile(folder)

    python = Part("Python", platform.python_version(), "PSF-2.0")
    kinds = [
        ("Python and shared libraries", [python, *map(library_part, sorted(one.name for one in libraries))]),
        ("Python packages", parts),
        ("Rust crates, compiled into uncork's core", _crates()),
    ]
    (folder / "THIRD-PARTY.txt").write_text(third_party_page(kinds))
    shutil.copy(ROOT / "LICENSE", folder)
    binaries = [path for path in folder.rglob("*") if path.is_file() and _is_binary(path)]
    glibc = glibc_needed(path.read_bytes() for path in binaries)
    (folder / "README.txt").write_text(_readme(version, glibc))
    archive = _pack(folder, out)
    print(f"{archive.relative_to(ROOT)}: {archive.stat().st_size / 1e6:.0f} MB, needs glibc {glibc} or newer")


# ---- what is copied ----


def _python_library() -> Path:
    """Return the shared library of the running Python."""
    name = sysconfig.get_config_var("INSTSONAME") if sysconfig.get_config_var("Py_ENABLE_SHARED") else None
    path = Path(sysconfig.get_config_var("LIBDIR")) / (name or "")
    if name is None or not path.is_file():
        raise SystemExit(
            f"{sys.base_prefix} has no libpython{VERSION}.so: install libpython{VERSION}, or build "
            "Python with --enable-shared; then run `make clean standalone PYTHON=...`"
        )
    return path


def _copy_tree(source: Path, target: Path) -> None:
    """Copy the needed modules of Python's library."""
    for path in sorted(source.rglob("*")):
        below = PurePosixPath(path.relative_to(source))
        if is_needed_file(below, of_python=True) and path.is_file():
            (target / below).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target / below)


def _copy_packages(target: Path) -> list[Part]:
    """Copy the packages that run uncork, and pip, which adds optional ones; return what they are."""
    parts = []
    for name in [*packages_to_run((ROOT / "requirements" / "run.txt").read_text()), "pip"]:
        package = importlib.metadata.distribution(name)
        for file in package.files or ():
            if is_needed_file(PurePosixPath(file), of_python=False):
                (target / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(Path(str(package.locate_file(file))), target / file)
        parts.append(Part(name, package.version, licence_of(package.metadata)))
    return parts


def _copy_libraries(folder: Path) -> list[Path]:
    """Copy the shared libraries outside glibc that the folder's binaries need; return the copies."""
    inside = {path.name for path in folder.rglob("*.so*")}
    needed: dict[str, Path] = {}
    for binary in folder.rglob("*.so*"):
        for line in _run("ldd", binary).splitlines():
            found = re.match(r"\s*(\S+) => (/\S+)", line)
            if found and is_needed_library(found[1]) and found[1] not in inside:
                needed[found[1]] = Path(found[2])
    copies = []
    for name, path in sorted(needed.items()):
        copies.append(Path(shutil.copy(path, folder / "lib" / name)))
        _copy_licence(path, folder / "licences" / f"{library_part(name).name}.txt".replace("/", " "))
    return copies


def _copy_licence(library: Path, target: Path) -> None:
    """Copy the licence of a library as Debian's package has it, if Debian packaged it."""
    for spelled in (library, library.resolve(), Path(str(library.resolve()).removeprefix("/usr"))):
        found = subprocess.run(["/usr/bin/dpkg", "-S", spelled], capture_output=True, text=True, check=False)
        text = Path("/usr/share/doc", found.stdout.partition(":")[0], "copyright")
        if found.returncode == 0 and text.is_file():
            shutil.copy(text, target)
            return
    raise SystemExit(f"{library}: no package of Debian has it, so its licence is not found")


def _crates() -> list[Part]:
    """Return the crates that the core is made of, without uncork's own."""
    lines = _run(
        "cargo",
        "tree",
        "-p",
        "uncork-py",
        "-e",
        "normal",
        "--prefix",
        "none",
        "--locked",
        "--format",
        "{p}|{l}",
    ).splitlines()
    found = {
        tuple(re.sub(r" \([^|]*\)", "", line).split("|"))
        for line in lines
        if "|" in line and " (/" not in line
    }
    return [Part(*name.split(" v"), licence or "see its files") for name, licence in sorted(found)]


# ---- what is made ----


def _compile_programs(folder: Path, libraries: list[Path]) -> None:
    """Compile `python3` and `uncork`.

    Python is linked to all libraries, so that they are loaded when an extension module asks for one by its
    name, whatever search path that module has.
    """
    paths = [folder / "lib" / f"libpython{VERSION}.so.1.0", *libraries]
    linked = ["-Wl,--no-as-needed", *paths, "-Wl,--disable-new-dtags,-rpath,$ORIGIN/../lib"]
    compiler = ["cc", "-O2", "-s", "-Wall", "-Werror"]
    _run(*compiler, "-o", folder / "bin" / "python3", HERE / "python3.c", *linked)
    _run(*compiler, "-o", folder / "bin" / "uncork", HERE / "uncork.c")
    (folder / "uncork").symlink_to("bin/uncork")


def _strip(library: Path) -> None:
    library.chmod(0o755)
    _run("strip", "--strip-unneeded", library)


def _precompile(folder: Path) -> None:
    """Compile all modules to bytecode that stays valid when files are copied."""
    _run(
        folder / "bin" / "python3", "-I", "-m", "compileall", "-q", "-j", "2", "--invalidation-mode",
        "unchecked-hash", "-s", folder, "-p", "", folder / "lib" / f"python{VERSION}",
    )  # fmt: skip


def _readme(version: str, glibc: str) -> str:
    machine, python = platform.machine(), platform.python_version()
    return f"""uncork {version} for Linux {machine}, with its own Python {python}

Run `./uncork --help`. The folder needs only glibc {glibc} or newer (`ldd --version`), and works anywhere.
To put it on your PATH: export PATH="$PWD/bin:$PATH"

Optional packages are left out. uncork names the command that adds one, such as
`bin/python3 -m pip install obstore`. THIRD-PARTY.txt lists what others wrote, with licences.
"""


def _pack(folder: Path, out: Path) -> Path:
    """Write the archive; the same folder gives the same bytes."""
    archive = out / f"{folder.name}.tar.gz"
    stamp = int(os.environ.get("SOURCE_DATE_EPOCH") or _run("git", "log", "-1", "--format=%ct"))

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = stamp
        return entry

    with tarfile.open(archive, "w:gz", compresslevel=6) as packed:
        packed.add(folder, folder.name, filter=plain)
    return archive


def _is_binary(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _run(*words: str | Path) -> str:
    done = subprocess.run(list(map(str, words)), cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(
            f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


if __name__ == "__main__":
    main()
