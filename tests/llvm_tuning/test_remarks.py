import pytest

from llvm_tuning.evidence.remarks import MAX_REMARKS, parse_remarks, summarize

RECORD = b"""--- !Missed
Pass:            inline
Name:            TooCostly
DebugLoc:        { File: 'a.c', Line: 7, Column: 3 }
Function:        main
Args:
  - Callee:          work
    DebugLoc:        { File: 'a.c', Line: 2, Column: 0 }
  - String:          ' not inlined into '
  - Caller:          main
  - Cost:            '310'
  - Threshold:       '225'
...
--- !Passed
Pass:            loop-vectorize
Name:            Vectorized
Function:        work
Args:
  - String:          'vectorized loop (vectorization width: '
  - VectorizationFactor: '4'
...
"""


def test_a_record_gives_kind_place_and_values():
    missed, passed = parse_remarks(RECORD)
    assert (missed.kind, missed.compiler_pass, missed.name, missed.line) == ("Missed", "inline", "TooCostly", 7)
    assert missed.args["Cost"] == "310"
    assert missed.message == "work not inlined into main310225"
    assert (passed.kind, passed.line, passed.args["VectorizationFactor"]) == ("Passed", None, "4")


def test_equal_remarks_become_one_entry_with_a_count():
    entries = summarize(parse_remarks(RECORD * 3))
    assert [e["count"] for e in entries] == [3, 3]


def test_the_channel_is_capped():
    many = b"".join(RECORD.replace(b"Line: 7", b"Line: %d" % n) for n in range(1, 200))
    assert len(summarize(parse_remarks(many))) == MAX_REMARKS


@pytest.mark.parametrize("text", [b"- 1\n- 2\n", b"--- !Missed\nPass: [\n", b"hello: world\n"])
def test_what_llvm_did_not_write_is_refused(text):
    with pytest.raises(ValueError, match="optimization"):
        parse_remarks(text)
