"""Everything that is checked by a machine: `nox -s build tests`, `nox -s lint`, `nox -l` for the rest.

`build` makes wheels of all packages in dist/; `tests` installs those wheels, never the source tree. Words after `--`
go to the session: `nox -s tests -- -k pool`. Only `tests` and `bench` install gradexamples, which brings torch.

Next: pyproject.toml, the settings of pytest, ruff and mypy.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.sessions = ["build", "tests"]

ROOT = Path(__file__).parent
PACKAGES = sorted(path.parent.name for path in ROOT.glob("packages/*/pyproject.toml"))
LIGHT = [name for name in PACKAGES if name != "gradexamples"]
TESTING = ["pytest>=8", "pytest-xdist>=3.5", "hypothesis>=6.100"]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # xdist already keeps every core busy


@nox.session(reuse_venv=True)
def build(session: nox.Session) -> None:
    """Build the wheels of all packages into dist/."""
    shutil.rmtree("dist", ignore_errors=True)
    sources = [f"./packages/{name}" for name in PACKAGES]
    session.run("python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "dist", *sources)


@nox.session(reuse_venv=True)
def tests(session: nox.Session) -> None:
    """Install the wheels; run every package's tests, then the conformance suite for every available backend."""
    install_wheels(session)
    options = session.posargs or ["-n", "auto"]
    # `pytest`, not `python -m pytest`: the latter puts the current folder on sys.path
    session.run("pytest", "--no-header", *options, env=ONE_THREAD)
    for backend in available_backends(session):
        run_suite(session, backend, options)


@nox.session(reuse_venv=True)
def conformance(session: nox.Session) -> None:
    """Run the conformance suite only: `nox -s conformance -- ref [pytest options]`; no name: every backend."""
    install(session, LIGHT)
    options = list(session.posargs)
    named = options and not options[0].startswith("-")
    for backend in [options.pop(0)] if named else available_backends(session):
        run_suite(session, backend, options or ["-n", "auto"])


@nox.session(reuse_venv=True)
def lint(session: nox.Session) -> None:
    """Check style with ruff, types with mypy (strict, gradcore), C and CUDA layout with clang-format."""
    session.install("ruff", "mypy", "clang-format", "numpy", "pluggy", "safetensors", *TESTING)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    kernels = sorted(
        str(path) for kind in ("c", "h", "cpp", "cu", "cuh") for path in Path().glob(f"packages/*/csrc/**/*.{kind}")
    )
    session.run("clang-format", "--dry-run", "-Werror", *kernels)
    session.run("mypy")


@nox.session(reuse_venv=True)
def bench(session: nox.Session) -> None:
    """Time ourselves beside the peers: `nox -s bench -- mnist --device cpu --threads 1 --peers torch-eager`."""
    install_wheels(session)
    files = sorted(Path("benchmarks").glob("*.py"))
    scripts = {path.stem: str(path) for path in files if '"__main__"' in path.read_text(encoding="utf-8")}
    if session.posargs and session.posargs[0] not in scripts:
        session.error(f"benchmarks: {', '.join(scripts)}")
    for name in session.posargs[:1] or scripts:
        session.run("python", scripts[name], *session.posargs[1:])


@nox.session
def sanitize(session: nox.Session) -> None:
    """Run gradref's tests with its C built under the address and undefined-behaviour sanitizers."""
    install(session, ["gradcore"])
    session.run(
        "python", "-m", "pip", "install", "--quiet", "-C", "cmake.define.GRADREF_SANITIZE=ON", "./packages/gradref"
    )
    # The interpreter is not built with the sanitizer, so its library has to be loaded first; libstdc++ with it,
    # because the sanitizer looks up the C++ exception functions when it starts.
    libraries = " ".join(compiler_file(name) for name in ("libasan.so", "libstdc++.so"))
    environment = {
        "LD_PRELOAD": libraries,
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself keeps memory until the end
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # so that an overrun of a small object is seen too
        **ONE_THREAD,
    }
    options = ["--capture=no", *session.posargs]  # a sanitizer reports and ends the process: nothing may hold its words
    session.run("pytest", "--no-header", "packages/gradref/tests", *options, env=environment)
    run_suite(session, "ref", options, environment)


# what the sessions share


def install(session: nox.Session, names: list[str]) -> None:
    """Build and install packages from the source tree as it is now, not editable."""
    session.install(*TESTING, *(f"./packages/{name}" for name in names))  # pip always reinstalls a folder


def install_wheels(session: nox.Session) -> None:
    """Install what `build` made, with its dependencies."""
    wheels = [str(wheel) for name in PACKAGES for wheel in Path("dist").glob(f"{name}-*.whl")]
    if len(wheels) != len(PACKAGES):
        session.error("dist/ does not hold one wheel of each package: run nox -s build")
    session.install(*TESTING, *wheels)
    session.install("--no-deps", "--force-reinstall", *wheels)  # pip keeps an old wheel of the same version


def available_backends(session: nox.Session) -> list[str]:
    """The names of the backends that can run here, asked of the installed gradcore."""
    rows = session.run("python", "-m", "gradcore", "--json", silent=True)
    return [row["name"] for row in json.loads(rows or "[]") if row["available"]]


def run_suite(session: nox.Session, backend: str, options: list[str], environment: dict[str, str] = ONE_THREAD) -> None:
    """The conformance suite on one backend, with the repository's pytest settings."""
    suite = ["--pyargs", "gradcore.testing.suite", "--gradcore-backend", backend]
    session.run("pytest", "--no-header", "-c", "pyproject.toml", *suite, *options, env=environment)


def compiler_file(name: str) -> str:
    """Where gcc has one of its libraries."""
    asked = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
