import gzip

from starlette.requests import Request
from starlette.responses import Response

from uncork.serve.answers import packed

TEXT = b"load-127.0.0.1 " * 500


def answered(**headers):
    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return packed(Request({"type": "http", "method": "GET", "headers": sent}), Response(TEXT))


def test_an_answer_is_packed_for_a_browser_that_takes_it_so():
    answer = answered(accept_encoding="gzip, deflate")
    assert gzip.decompress(answer.body) == TEXT and len(answer.body) < len(TEXT) / 10
    assert answer.headers["content-encoding"] == "gzip" and answer.headers["vary"] == "accept-encoding"
    assert int(answer.headers["content-length"]) == len(answer.body)


def test_it_is_sent_as_it_is_where_it_is_not_taken_so_or_another_site_asks():
    for headers in (
        {},
        {"accept_encoding": "br"},
        {"accept_encoding": "gzip", "sec_fetch_site": "cross-site"},
    ):
        answer = answered(**headers)
        assert answer.body == TEXT and "content-encoding" not in answer.headers
        assert answer.headers["vary"] == "accept-encoding"
