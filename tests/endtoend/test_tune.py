"""The main job by its command line, with the real compiler, sandbox and clock."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.serial

PROGRAMS = Path(__file__).parents[2] / "llvm_tuning" / "suite" / "programs"


def complab(*words, cwd, environment=None, **options):
    return subprocess.run(
        [sys.executable, "-m", "experiments.cli", *map(str, words)],
        cwd=cwd,
        env={**(environment or os.environ), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=240,
        **options,
    )


def test_a_program_is_made_faster_with_proof_and_the_same_command_shows_it_again(tmp_path):
    words = ("tune", "matmul_int8", "--advisor", "expert", "--budget", "3", "--json", "out.json")
    first = complab(*words, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    result = json.loads((tmp_path / "out.json").read_text())
    assert {"ratio", "ci_low", "ci_high", "decision", "evaluations", "flags", "run"} <= result.keys()
    assert result["decision"] == "faster"
    assert result["ratio"] > result["ci_low"] > 1.2  # it doubles at least: far beyond any load's noise
    assert result["evaluations"] <= 3
    page = (tmp_path / result["run"] / "report" / "index.html").read_text()
    assert page.count("<svg") == 3
    kept = re.search(r"Kept setting: <code>(.*?)</code>", page)
    assert kept is not None
    assert kept[1]
    assert result["flags"]
    needed = re.search(r"Needed of it, .*?: <code>(.*?)</code>", page) or kept
    assert {f"-{word}" for word in needed[1].split()} <= set(result["flags"])
    again = complab(*words, cwd=tmp_path)
    assert json.loads((tmp_path / "out.json").read_text()) == result
    assert again.returncode == 0
    verified = complab("llvm", "verify", result["run"], "--fail-on-regression", "--json", "now.json", cwd=tmp_path)
    assert verified.returncode == 0, verified.stderr
    now = json.loads((tmp_path / "now.json").read_text())
    assert now["changed"] == []
    assert now["again"]["low"] > 1.2
    assert now["again"]["seed"] != now["claimed"]["seed"]


def test_verify_refuses_what_kept_o3_and_fails_when_the_gain_is_gone(tmp_path):
    (tmp_path / "p.c").write_text((PROGRAMS / "matmul_int8.c").read_text())
    words = ("tune", "p.c", "--args", "32 1", "--advisor", "expert", "--budget", "1", "--json", "out.json")
    assert complab(*words, cwd=tmp_path).returncode == 0
    run = json.loads((tmp_path / "out.json").read_text())["run"]
    (tmp_path / "p.c").write_text("int main(void) { return 0; }\n")
    gone = complab("llvm", "verify", run, "--fail-on-regression", cwd=tmp_path)
    assert gone.returncode == 1, gone.stderr
    assert "changed since: the program" in gone.stdout
    assert "does not hold" in gone.stdout
    words = ("tune", "p.c", "--advisor", "expert", "--budget", "1", "--json", "out.json")
    assert complab(*words, cwd=tmp_path).returncode == 0
    kept = complab("llvm", "verify", json.loads((tmp_path / "out.json").read_text())["run"], cwd=tmp_path)
    assert kept.returncode == 2
    assert "kept -O3" in kept.stderr


def test_the_printed_command_builds_a_program_with_the_same_output(tmp_path):
    done = complab("tune", "two_matmuls", "--advisor", "random", "--budget", "1", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    command = json.loads(done.stdout)["command"]
    subprocess.run([*command.split(), "-o", tmp_path / "tuned"], check=True)
    subprocess.run(["clang-22", "-O3", command.split()[-1], "-o", tmp_path / "plain"], check=True)
    assert subprocess.check_output([tmp_path / "tuned"]) == subprocess.check_output([tmp_path / "plain"])


@pytest.fixture
def path_without_llvm(tmp_path):
    """A PATH with all that this one has, but no LLVM tool."""
    links = tmp_path / "bin"
    links.mkdir()
    for folder in reversed(os.environ["PATH"].split(os.pathsep)):  # earlier folders win
        for tool in Path(folder).glob("*"):
            if not re.match(r"(clang|llvm|opt\b|llc|lld|ld\.lld)", tool.name):
                (links / tool.name).unlink(missing_ok=True)
                (links / tool.name).symlink_to(tool)
    return {**os.environ, "PATH": str(links)}


def test_without_clang_a_c_program_is_tuned_by_zig_and_cpp_is_refused(tmp_path, path_without_llvm):
    words = ("tune", "matmul_int8", "--advisor", "expert", "--budget", "1", "--json", "out.json")
    done = complab(*words, cwd=tmp_path, environment=path_without_llvm)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["decision"] == "faster"
    assert "zig" in result["command"]
    (tmp_path / "x.cpp").write_text("int main() {}\n")
    refused = complab("tune", "x.cpp", cwd=tmp_path, environment=path_without_llvm)
    assert refused.returncode == 2
    assert "only C programs" in refused.stderr


def test_a_cpp_program_is_compiled_and_linked_as_cpp(tmp_path):
    (tmp_path / "sum.cpp").write_text(
        "#include <iostream>\n#include <vector>\nint main() { std::vector<int> v(9, 2); int s = 0;"
        " for (int x : v) s += x; std::cout << s << std::endl; }\n"
    )
    done = complab("tune", "sum.cpp", "--advisor", "expert", "--budget", "1", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    built = [*json.loads(done.stdout)["command"].split(), "-o", "sum"]
    subprocess.run(built, check=True, cwd=tmp_path)
    assert subprocess.check_output([tmp_path / "sum"]) == b"18\n"


def test_an_interrupt_leaves_no_process_and_the_same_command_goes_on(tmp_path):
    words = ("tune", "two_matmuls", "--advisor", "random", "--budget", "4", "--json", "out.json")
    with subprocess.Popen(
        [sys.executable, "-m", "experiments.cli", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        for line in child.stderr:
            if "trial 2" in line:
                break
        descendants = psutil.Process(child.pid).children(recursive=True)
        child.send_signal(signal.SIGINT)
        rest = child.stderr.read()
        assert child.wait(60) == 130, rest
    assert "goes on from there" in rest
    assert "Traceback" not in rest
    deadline = time.monotonic() + 10
    while any(p.is_running() and p.status() != "zombie" for p in descendants):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert not (tmp_path / "out.json").exists()
    done = complab(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "trial 2" in done.stderr
    assert "(from the record)" in done.stderr
    (run,) = (tmp_path / "runs" / "llvm").iterdir()
    indices = [json.loads(line)["index"] for line in (run / "trials.jsonl").read_text().splitlines()]
    assert sorted(set(indices)) == list(range(max(indices) + 1))


BAD = [
    (("nowhere.c",), "There is no C or C++ file 'nowhere.c'"),
    (("bad.c",), "does not compile"),
    (("fails.c",), "exit code 4"),
    (("hangs.c", "--timeout", "1"), "did not end within 1 s"),
    (("clock.c",), "does not repeat itself"),
    (("matmul_int8", "--budget", "0"), "budget"),
    (("matmul_int8", "budgte=3"), "budget"),
    (("matmul_int8", "budget=many"), "budget"),
    (("matmul_int8", "--advisor", "llm", "--model", "nobody"), "nobody"),
    (("matmul_int8", "--stdin", "none.txt"), "reads and writes no files"),
    (("fails.c", "--stdin", "none.txt"), "--stdin 'none.txt' cannot be read"),
    (("matmul_int8", "--cflags", "-fplugin=x.so"), "-fplugin=x.so"),
    (("matmul_int8", "--budget", "1", "--runs", "/proc/none"), "/proc/none"),
]


@pytest.mark.parametrize(("words", "said"), BAD, ids=lambda v: v[0] if isinstance(v, tuple) else None)
def test_bad_input_is_one_paragraph_and_leaves_nothing(tmp_path, words, said):
    (tmp_path / "bad.c").write_text("int main(void) { return undeclared; }\n")
    (tmp_path / "fails.c").write_text("int main(void) { return 4; }\n")
    (tmp_path / "hangs.c").write_text("int main(void) { for (;;) ; }\n")
    (tmp_path / "clock.c").write_text(
        "#include <stdio.h>\n#include <time.h>\nint main(void) { struct timespec t; clock_gettime(0, &t);"
        ' printf("%ld\\n", t.tv_nsec); return 0; }\n'
    )
    done = complab("tune", *words, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out.json").exists()
    assert not (tmp_path / "runs").exists()
