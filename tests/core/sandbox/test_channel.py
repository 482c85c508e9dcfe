"""Whatever is not a well-formed frame with this run's nonce is tampering, and is never parsed."""

import struct
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import core.sandbox
from core.sandbox.channel import NONCE_BYTES, FrameReader, Tampered, frame, new_nonce
from core.sandbox.policy import Command, Limits, Policy, Result, Session, SessionEnded
from core.sandbox.service import open_sandbox

HERE = Path(core.sandbox.__file__).parent
NONCE = bytes(range(NONCE_BYTES))
CHILD = {"channel_child.py": (HERE / "channel_child.py").read_bytes()}


@given(st.lists(st.binary(max_size=50)), st.data())
def test_frames_survive_any_fragmentation(payloads: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(frame(NONCE, payload) for payload in payloads)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    reader, got = FrameReader(NONCE, 50), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got += reader.feed(stream[start:end])
    reader.end()
    assert got == payloads


@given(st.binary(max_size=20), st.integers(0, NONCE_BYTES - 1), st.integers(1, 255))
def test_one_wrong_bit_of_the_nonce_is_tampering(payload: bytes, place: int, change: int) -> None:
    bad = bytearray(frame(NONCE, payload))
    bad[place] ^= change
    with pytest.raises(Tampered):
        FrameReader(NONCE, 50).feed(bytes(bad))


@given(st.binary(min_size=1, max_size=200).filter(lambda b: not NONCE.startswith(b[:NONCE_BYTES])))
def test_foreign_bytes_are_tampering_at_the_first_wrong_one(noise: bytes) -> None:
    with pytest.raises(Tampered):
        FrameReader(NONCE, 50).feed(noise)


@given(st.binary(max_size=50), st.data())
def test_torn_frame_is_tampering(payload: bytes, data: st.DataObject) -> None:
    whole = frame(NONCE, payload)
    reader = FrameReader(NONCE, 50)
    assert reader.feed(whole[: data.draw(st.integers(1, len(whole) - 1))]) == []
    with pytest.raises(Tampered):
        reader.end()


def test_size_above_the_cap_is_refused_before_the_payload_comes() -> None:
    with pytest.raises(Tampered, match="cap"):
        FrameReader(NONCE, 50).feed(NONCE + struct.pack("<I", 51))


def test_nonces_differ() -> None:
    assert len({new_nonce() for _ in range(100)}) == 100


HARNESS = b"""
#include "channel.h"
#include <stdio.h>
#include <sys/wait.h>
int main(void) {
    complab_channel channel;
    if (complab_open(&channel) != 0) return 9;
    int sevens = 0;
    for (int i = 0; i < 60; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            execl(i % 2 ? "./a" : "./b", "x", (char *)0);
            _exit(1);
        }
        int status;
        waitpid(pid, &status, 0);
        sevens += WEXITSTATUS(status) == 7;
    }
    char text[40];
    int size = snprintf(text, sizeof text, "{\\"sevens\\": %d}", sevens);
    return complab_send(&channel, text, (unsigned)size);
}
"""
# Leaks would show here: the program succeeds only when it inherits nothing but the standard descriptors.
PROGRAM = b"""
#include <fcntl.h>
int main(void) {
    for (int fd = 3; fd < 64; fd++) if (fcntl(fd, F_GETFD) >= 0) return 1;
    return %d;
}
"""


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces"])
@pytest.mark.parametrize("compiler", ["clang-22", "gcc"])
def test_c_harness_alternates_two_programs_and_reports(backend: str, compiler: str) -> None:
    box = open_sandbox(backend=backend)

    def build(source: bytes) -> bytes:
        files = {"p.c": source, "channel.h": (HERE / "channel.h").read_bytes()}
        argv = (compiler, "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2", "p.c", "-o", "p")
        result = box.run(Command(argv=argv, files=files, outputs=("p",)), Policy())
        assert result.ok, result.stderr
        return result.files["p"]

    files = {"harness": build(HARNESS), "a": build(PROGRAM % 7), "b": build(PROGRAM % 8)}
    result = box.run(Command(argv=("./harness",), files=files, executables=tuple(files), channel=True), Policy())
    assert (result.status, result.exit_code, result.channel) == ("exit", 0, b'{"sevens": 30}')


def speak(code: str, **limits: float) -> Result:
    files = {**CHILD, "kid.py": code.encode()}
    command = Command(argv=(sys.executable, "-B", "kid.py"), files=files, channel=True)
    return open_sandbox().run(command, Policy(limits=Limits.model_validate(limits)))


def test_python_child_sends_one_frame() -> None:
    result = speak("from channel_child import Channel\nChannel().send(b'x' * 300000)")
    assert result.ok
    assert result.channel == b"x" * 300000


def test_program_that_says_nothing_has_no_payload() -> None:
    assert speak("").channel is None


@pytest.mark.parametrize(
    "code",
    [
        "c._nonce = bytes(32); c.send(b'')",
        "c.send(b'1'); c.send(b'2')",
        "import os; os.write(c._fd, c._nonce)",
        "c.send(bytes(2000))",
    ],
    ids=["wrong nonce", "two frames", "torn", "above the cap"],
)
def test_tampering_is_a_status_and_nothing_is_parsed(code: str) -> None:
    result = speak(f"from channel_child import Channel\nc = Channel()\n{code}", channel_bytes=1000)
    assert (result.status, result.channel, result.ok) == ("tampered", None, False)
    assert result.detail


def test_printed_frames_count_for_nothing() -> None:
    result = speak("from channel_child import Channel\nc = Channel()\nprint(c._nonce.hex(), '{\"ok\": true}')")
    assert result.ok
    assert result.channel is None


def test_descriptor_sent_over_the_channel_is_not_taken() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    result = speak(
        "import os, socket, struct\nfrom channel_child import Channel\nc = Channel()\n"
        "s = socket.socket(fileno=c._fd)\n"
        "socket.send_fds(s, [c._nonce + struct.pack('<I', 1) + b'x'], [os.open('/usr', os.O_RDONLY)])"
    )
    assert result.channel == b"x"
    assert len(list(Path("/proc/self/fd").iterdir())) == before


ECHO = """
import os, sys, time
from channel_child import Channel
c = Channel()
while (request := c.receive()) is not None:
    if request == b"die": os._exit(5)
    if request == b"hang": time.sleep(60)
    if request == b"lie": c._nonce = bytes(32)
    if request == b"twice": c.send(b"")
    c.send(request[::-1])
print("bye")
"""


def echo() -> Command:
    return Command(argv=(sys.executable, "-B", "kid.py"), files={**CHILD, "kid.py": ECHO.encode()})


def test_session_answers_and_ends_by_itself_when_closed() -> None:
    with open_sandbox().session(echo(), Policy()) as session:
        assert session.ask(b"abc", 20) == b"cba"
        large = bytes(range(256)) * 4000
        assert session.ask(large, 20) == large[::-1]
        result = session.close()
    assert (result.ok, result.stdout) == (True, b"bye\n")


@pytest.mark.parametrize(("request_", "status"), [(b"die", "exit"), (b"hang", "timeout"), (b"lie", "tampered")])
def test_session_that_fails_says_how_it_ended(request_: bytes, status: str) -> None:
    session = open_sandbox().session(echo(), Policy())
    with pytest.raises(SessionEnded) as caught:
        session.ask(request_, 1.0)
    assert caught.value.result.status == status
    assert session.close() == caught.value.result
    with pytest.raises(SessionEnded):
        session.ask(b"again", 1.0)


def test_session_that_answers_twice_has_tampered() -> None:
    with open_sandbox().session(echo(), Policy()) as session:
        session.ask(b"twice", 20)
        with pytest.raises(SessionEnded, match="tampered"):
            ask_often(session)


def ask_often(session: Session) -> None:
    for _ in range(5):
        time.sleep(0.1)  # so that the frame too many has arrived
        session.ask(b"x", 20)


def test_session_is_bounded_by_the_wall_limit() -> None:
    with (
        open_sandbox().session(echo(), Policy(limits=Limits(wall_s=0.5))) as session,
        pytest.raises(SessionEnded, match="timeout"),
    ):
        session.ask(b"hang", 60)


def test_an_error_in_the_parent_ends_the_session() -> None:
    with pytest.raises(KeyError), open_sandbox().session(echo(), Policy()) as session:
        raise KeyError
    assert session.close().status != "exit"


def test_channel_is_a_socket_pair_that_only_one_process_holds() -> None:
    result = speak("import os\nfd = int(os.environ['COMPLAB_CHANNEL'])\nprint(os.readlink(f'/proc/self/fd/{fd}'))")
    assert result.stdout.startswith(b"socket:")
