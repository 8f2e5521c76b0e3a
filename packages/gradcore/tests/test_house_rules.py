"""The countable house rules, over the source tree of all packages; skipped where only the wheels are around.

File lengths, a test file for each module, one version, no decision by a backend's name.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ROOT / "packages"
CORE = PACKAGES / "gradcore" / "src" / "gradcore"
LIMITS = {".py": 300, **dict.fromkeys((".c", ".h", ".cpp", ".cu", ".cuh"), 250)}
BUILT = {"build", "dist", "__pycache__", ".nox", ".venv", "venv", "site"}
# Modules without behaviour of their own; their contents are used by all other tests.
NO_TEST = {"errors.py", "backend/protocol.py"}

pytestmark = pytest.mark.skipif(not CORE.is_dir(), reason="needs the source tree")


def sources(*suffixes: str) -> list[Path]:
    """The files of the tree that people write."""
    found = [path for part in (PACKAGES, ROOT / "benchmarks") for path in part.rglob("*") if path.suffix in suffixes]
    return sorted(path for path in found if not BUILT & set(path.relative_to(ROOT).parts))


def test_file_lengths() -> None:
    too_long = {}
    for path in sources(*LIMITS):
        lines = path.read_text(encoding="utf-8").splitlines()
        if len(lines) > LIMITS[path.suffix] and not any("Longer" in line for line in lines[:10]):
            too_long[str(path.relative_to(ROOT))] = len(lines)
    assert not too_long, f"split these, or give the reason in the header with the word 'Longer': {too_long}"


def test_every_file_says_what_it_is() -> None:
    silent = []
    for path in sources(*LIMITS):
        text = path.read_text(encoding="utf-8").lstrip()
        if path.name != "__init__.py" and not text.startswith(('"""', "//", "/*", "#!", "#")):
            silent.append(str(path.relative_to(ROOT)))
    assert not silent, f"these open without a header: {silent}"


def test_each_module_has_its_test_file() -> None:
    missing = []
    for path in sorted(CORE.rglob("*.py")):
        name = path.relative_to(CORE)
        if path.name == "__init__.py" or "suite" in name.parts or name.as_posix() in NO_TEST:
            continue
        test = PACKAGES / "gradcore" / "tests" / name.parent / f"test_{path.stem.strip('_')}.py"
        if not test.is_file():
            missing.append(f"{name.as_posix()} -> {test.relative_to(ROOT).as_posix()}")
    assert not missing, "missing test files:\n" + "\n".join(missing)


def test_versions_agree() -> None:
    versions = {}
    for project in sorted(PACKAGES.glob("*/pyproject.toml")):
        name = project.parent.name
        text = (project.parent / "src" / name / "__init__.py").read_text(encoding="utf-8")
        versions[name] = re.findall(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
        pins = re.findall(r'"grad\w+==([^"]+)"', project.read_text(encoding="utf-8"))
        versions[f"pins of {name}"] = sorted(set(pins)) or versions[name]
    assert set(PACKAGES.glob("*")) == {PACKAGES / name for name in versions if " " not in name}
    assert len({tuple(found) for found in versions.values()}) == 1, versions


def decisions(tree: ast.AST) -> Iterator[ast.expr]:
    """The expressions on which a program branches or a test is skipped."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            yield node.test
        elif isinstance(node, ast.comprehension):
            yield from node.ifs
        elif isinstance(node, ast.Call) and "skip" in ast.unparse(node.func):
            yield from node.args


def elements(side: ast.expr) -> list[ast.expr]:
    """What stands in a tuple, list or set; anything else is its own only element."""
    return side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]


def names_a_backend(decision: ast.expr) -> bool:
    """Whether it compares `<some backend>.name` with literal text."""
    for node in ast.walk(decision):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            asks = any(re.search(r"backend.*\.name$", ast.unparse(side)) for side in sides)
            if asks and any(isinstance(text, ast.Constant) for side in sides for text in elements(side)):
                return True
    return False


def test_capabilities_not_names() -> None:
    found = []
    for path in sources(".py"):
        if "gradcuda" in path.relative_to(PACKAGES if path.is_relative_to(PACKAGES) else ROOT).parts:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(ROOT)}:{one.lineno}" for one in decisions(tree) if names_a_backend(one)]
    assert not found, f"ask for a capability, not for a backend's name: {found}"


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("if backend.name == 'cuda': pass", True),
        ("x = 1 if self.backend.name in ('cuda', 'ref') else 2", True),
        ("pytest.mark.skipif(get_backend().name != 'ref')", True),
        ("[t for t in ts if 'cuda' in t.backend.name]", True),
        ("if a.backend.name != b.backend.name: pass", False),
        ("if name.partition(':')[0] == backend.name: pass", False),
        ("if isinstance(backend, Conv2dOps): pass", False),
        ("assert get_backend().name == 'numpy'", False),
    ],
)
def test_the_rule_itself(code: str, wrong: bool) -> None:
    assert any(names_a_backend(one) for one in decisions(ast.parse(code))) is wrong
