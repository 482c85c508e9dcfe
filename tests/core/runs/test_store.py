import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ComplabError
from core.records import digest_bytes
from core.runs.store import Store


@given(st.binary(max_size=500))
def test_what_was_put_comes_back_under_its_digest(tmp_path_factory, data):
    store = Store(tmp_path_factory.getbasetemp() / "shared-blobs")
    digest = store.put(data)
    assert digest == digest_bytes(data) == store.put(data)
    assert store.has(digest)
    assert store.get(digest) == data
    assert store.path(digest).relative_to(store.root).parts == (digest[:2], digest)


def test_a_missing_blob_is_named(tmp_path):
    with pytest.raises(ComplabError, match=f"Blob {'0' * 64} is missing"):
        Store(tmp_path).get("0" * 64)


def test_a_damaged_blob_is_never_given_out(tmp_path):
    store = Store(tmp_path)
    digest = store.put(b"good")
    store.path(digest).write_bytes(b"evil")
    with pytest.raises(ComplabError, match="is damaged"):
        store.get(digest)


@pytest.mark.parametrize("text", ["", "../" * 20, "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_what_is_no_digest_is_no_path(tmp_path, text):
    with pytest.raises(ComplabError, match="is not a sha256 digest"):
        Store(tmp_path).path(text)


def test_nothing_but_blobs_is_left_behind(tmp_path):
    store = Store(tmp_path)
    digests = {store.put(bytes([n])) for n in range(20)}
    assert {path.name for path in tmp_path.glob("*/*")} == digests
