import json
import os
import shutil

import pytest
from click.testing import CliRunner

from llvm_tuning.cli import llvm
from llvm_tuning.toolchain.capabilities import Capabilities, capabilities
from llvm_tuning.toolchain.discover import BESIDE, discover


def test_every_tool_answers_with_its_version_or_is_named_as_missing(tools):
    found = capabilities(tools)
    assert {*found.tools, *found.missing} == set(BESIDE)
    assert found.routes == {"clang": "ready", "opt": "ready"}
    assert found.drifted_knobs == {}
    assert Capabilities.model_validate_json(found.model_dump_json()) == found


def test_without_opt_the_route_is_not_ready_and_says_what_to_install(tools):
    paths = {name: path for name, path in tools.paths.items() if name != "opt"}
    found = capabilities(tools.model_copy(update={"paths": paths}))
    assert found.missing["opt"] == "pass pipelines of one's own"
    assert "llvm-22" in found.routes["opt"]
    assert "opt" in found.summary()["missing"]


def test_a_tool_that_does_not_run_is_missing(tools, tmp_path):
    broken = tmp_path / "opt"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    found = capabilities(tools.model_copy(update={"paths": {**tools.paths, "opt": str(broken)}}))
    assert found.missing["opt"] == "it does not run"
    assert found.routes["opt"] != "ready"


def test_a_tool_of_another_version_is_never_taken(monkeypatch, tmp_path, tools):
    other = tmp_path / "opt"
    other.write_text("#!/bin/sh\necho LLVM version 3.4\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert shutil.which("opt") == str(other)
    assert discover().paths["opt"] == tools.paths["opt"]


def test_the_fallback_compiler_knows_the_same_knobs_has_no_opt_and_leaves_no_file(monkeypatch, tmp_path):
    tools, place = tmp_path / "tools", tmp_path / "place"
    tools.mkdir()
    place.mkdir()
    (tools / "cc").symlink_to(str(shutil.which("cc")))
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.chdir(place)
    found = capabilities(discover())
    assert found.compiler.startswith("zig cc")
    assert (found.missing_knobs, found.drifted_knobs) == ({}, {})
    assert found.routes["opt"] != "ready"
    assert list(place.iterdir()) == []


def test_more_semantics_give_more_knobs(tools):
    counts = [capabilities(tools, s).knobs for s in ("exact", "fp_reordering", "unsafe")]
    assert counts == sorted(set(counts))


@pytest.mark.parametrize("command", ["tools", "knobs"])
def test_the_commands_print_tables_and_json(command):
    runner = CliRunner()
    plain, data = runner.invoke(llvm, [command]), runner.invoke(llvm, [command, "--json", "-"])
    assert (plain.exit_code, data.exit_code) == (0, 0), plain.output + data.output
    told = json.loads(data.stdout)
    assert told["compiler"].startswith("clang ")
    if command == "knobs":
        (inline,) = [k for k in told["knobs"] if k["name"] == "inline-threshold"]
        assert (inline["default"], inline["type"], inline["semantics"]) == ("225", "number", "exact")
