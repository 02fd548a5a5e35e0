from uncork.serve.runs import _event


def test_text_of_a_run_cannot_make_an_event_of_its_own():
    assert _event("progress", "a\n\nevent: ended\r\rdata: b\r\nc") == (
        "event: progress\ndata: a\ndata: \ndata: event: ended\ndata: \ndata: data: b\ndata: c\n\n"
    )
