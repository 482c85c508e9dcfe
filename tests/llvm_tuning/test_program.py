import pytest

from core.errors import BadInput
from llvm_tuning.program import load_program, shipped_programs


def test_a_shipped_program_has_hidden_inputs_that_differ():
    for name in shipped_programs():
        program = load_program(name)
        assert program.hidden
        assert program.hidden[0] != program.inputs[0]


def test_a_missing_file_names_the_near_shipped_programs():
    with pytest.raises(BadInput, match=r"no C or C\+\+ file 'matmul_int'.*matmul_int8"):
        load_program("matmul_int")


@pytest.mark.parametrize(
    "flag",
    ["-o x", "-ofoo", "-B/tmp", "--config=x.cfg", "-fpass-plugin=evil.so", "@file", "-Xclang -load", "-S", "-mllvm -x"],
)
def test_a_flag_that_changes_what_is_built_is_refused(flag, tmp_path):
    source = tmp_path / "a.c"
    source.write_text("int main(void) { return 0; }")
    with pytest.raises(BadInput, match="--cflags holds"):
        load_program(str(source), cflags=flag)


def test_unbalanced_quotes_are_named(tmp_path):
    source = tmp_path / "a.c"
    source.write_text("")
    with pytest.raises(BadInput, match="--args"):
        load_program(str(source), args="'a")


def test_include_directories_become_absolute(tmp_path, monkeypatch):
    (tmp_path / "inc").mkdir()
    (tmp_path / "a.c").write_text("")
    monkeypatch.chdir(tmp_path)
    program = load_program("a.c", cflags="-Iinc -lm -DX=1")
    assert program.cflags[:2] == ("-I", str(tmp_path / "inc"))
    assert "-lm" in program.cflags
    assert "-lm" not in program.compile_flags


@pytest.mark.parametrize("name", ["/etc/passwd", "../x"])
def test_an_output_outside_the_working_directory_is_refused(name, tmp_path):
    (tmp_path / "a.c").write_text("")
    with pytest.raises(BadInput, match="--output"):
        load_program(str(tmp_path / "a.c"), outputs=(name,))
