import errno
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import BadInput, ComplabError
from core.records import Record
from core.runs import journal as module
from core.runs.journal import Journal, decode, encode, load


class Line(Record):
    n: int
    text: str = ""


def written(path, count=3):
    journal = Journal(path, Line)
    for n in range(count):
        journal.append(Line(n=n, text=f"line {n}"))
    journal.close()
    return [Line(n=n, text=f"line {n}") for n in range(count)]


@given(st.integers(), st.text(st.characters(exclude_categories=["Cs"])))
def test_a_line_is_json_and_gives_back_its_record(n, text):
    line = encode(Line(n=n, text=text))
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"n": n, "text": text, "crc": json.loads(line)["crc"]}
    assert Line.model_validate_json(decode(line)) == Line(n=n, text=text)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.data())
def test_any_changed_byte_and_any_cut_is_noticed(text, data):
    line = encode(Line(n=1, text=text))
    at = data.draw(st.integers(0, len(line) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != line[at]))
    assert decode(line[:at] + bytes([other]) + line[at + 1 :]) is None
    assert decode(line[:at]) is None


def test_records_come_back_in_order_and_appending_goes_on(tmp_path):
    path = tmp_path / "j.jsonl"
    lines = written(path)
    journal = Journal(path, Line)
    assert (journal.records, journal.dropped) == (lines, None)
    journal.append(Line(n=3))
    journal.close()
    assert load(path, Line).records == [*lines, Line(n=3)]


@pytest.mark.parametrize("cut", [1, 2, 10, 30])
def test_a_torn_last_line_is_dropped_and_said(tmp_path, cut):
    path = tmp_path / "j.jsonl"
    lines = written(path)
    path.write_bytes(path.read_bytes()[:-cut])
    assert load(path, Line).records == lines[:2]
    assert "line (3) was torn" in load(path, Line).dropped
    journal = Journal(path, Line)
    assert "line (3) was torn" in journal.dropped
    journal.append(Line(n=9))
    journal.close()
    assert load(path, Line).records == [*lines[:2], Line(n=9)]
    assert load(path, Line).dropped is None


def test_a_tail_of_zeros_as_a_power_loss_leaves_is_dropped(tmp_path):
    path = tmp_path / "j.jsonl"
    lines = written(path)
    path.write_bytes(path.read_bytes() + bytes(500))
    assert load(path, Line).records == lines


@pytest.mark.parametrize("line", [1, 2, 3])
def test_a_whole_line_that_was_changed_is_an_error_that_names_it(tmp_path, line):
    path = tmp_path / "j.jsonl"
    written(path)
    lines = path.read_bytes().split(b"\n")
    lines[line - 1] = lines[line - 1].replace(b"line", b"lime")
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(ComplabError, match=rf"j\.jsonl: line {line} of 3 is damaged"):
        load(path, Line)
    with pytest.raises(ComplabError, match=f"line {line} of 3"):
        Journal(path, Line)


def test_a_sound_line_of_another_type_is_an_error_that_names_the_field(tmp_path):
    class Other(Record):
        m: int

    path = tmp_path / "j.jsonl"
    written(path)
    with pytest.raises(ComplabError, match="line 1 is no Other: m: Field required"):
        load(path, Other)


def test_one_write_a_record_and_at_most_one_flush_a_second(tmp_path, monkeypatch):
    writes, flushes, clock = [], [], [0.0]
    real = os.write
    monkeypatch.setattr(module.os, "write", lambda fd, data: writes.append(data) or real(fd, data))
    monkeypatch.setattr(module.os, "fdatasync", flushes.append)
    journal = Journal(tmp_path / "j.jsonl", Line, clock=lambda: clock[0])
    for n in range(100):
        clock[0] = n / 40
        journal.append(Line(n=n))
    assert (len(writes), len(flushes)) == (100, 2)
    journal.close()
    assert len(flushes) == 3
    journal.close()
    assert len(flushes) == 3


def test_a_full_disk_leaves_no_half_line(tmp_path, monkeypatch):
    path = tmp_path / "j.jsonl"
    journal = Journal(path, Line)
    journal.append(Line(n=0))
    real = os.write
    monkeypatch.setattr(module.os, "write", lambda fd, data: real(fd, data[:7]))
    with pytest.raises(ComplabError, match=r"No space is left on the disk of .*Free some space"):
        journal.append(Line(n=1))

    def full(fd, data):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(module.os, "write", full)
    with pytest.raises(ComplabError, match="No space is left"):
        journal.append(Line(n=1))
    monkeypatch.undo()
    journal.append(Line(n=2))
    journal.close()
    assert load(path, Line).records == [Line(n=0), Line(n=2)]


def test_a_really_full_device_is_one_paragraph():
    with pytest.raises(ComplabError, match="No space is left on the disk of /dev/full"):
        journal_to_full()


def journal_to_full():
    from core.files import refusal

    fd = os.open("/dev/full", os.O_WRONLY)
    try:
        os.write(fd, b"x")
    except OSError as error:
        raise refusal(error, "/dev/full") from error
    finally:
        os.close(fd)


def test_a_path_that_is_a_directory_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match="is in the way"):
        load(tmp_path, Line)


def test_appending_after_closing_is_refused(tmp_path):
    journal = Journal(tmp_path / "j.jsonl", Line)
    journal.close()
    with pytest.raises(ComplabError, match="is closed"):
        journal.append(Line(n=1))
