"""Texts are fetched from where templates say, and from nowhere that is none of the caller's business."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from orchestrator.clients.url_fetcher import Fetched, Fetcher
from orchestrator.errors import CouldNotFetch
from tests.patience import took_at_most

OWN_NETWORK = Fetched(max_bytes=1000, seconds=5.0, private=True)


class Pages(BaseHTTPRequestHandler):
    """The contents of the server, by path."""

    requests: ClassVar[list[tuple[str, dict[str, str]]]] = []

    def do_GET(self) -> None:
        self.requests.append((self.path, dict(self.headers)))
        match self.path.split("/")[1:]:
            case ["text", *_]:
                self.answer(200, b"heat_template_version: 2021-04-16\n")
            case ["large", size]:
                self.answer(200, b"x" * int(size))
            case ["bytes"]:
                self.answer(200, b"\xff\xfe")
            case ["to", *where]:
                self.answer(302, b"", Location="/".join(where).replace(":/", "://", 1))
            case ["again", count]:
                self.answer(307, b"", Location=f"/again/{int(count) - 1}" if count != "0" else "/text")
            case ["drip"]:
                self.send_response(200)
                self.end_headers()
                for _ in range(100):
                    self.wfile.write(b".")
                    self.wfile.flush()
                    time.sleep(0.1)
            case _:
                self.answer(404, b"there is no such thing")

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args: Any) -> None:
        """The client did not wait for the end."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = Server(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def refusal(url: str, rules: Fetched = OWN_NETWORK, **how: Any) -> CouldNotFetch:
    with pytest.raises(CouldNotFetch) as caught:
        Fetcher(rules)(url, **how)
    return caught.value


def test_a_text_is_fetched_without_telling_who_we_are(site, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert Fetcher(OWN_NETWORK)(f"{site}/text/a?b=c") == "heat_template_version: 2021-04-16\n"
    path, headers = Pages.requests[-1]
    assert path == "/text/a?b=c"
    assert set(headers) == {"Host", "Accept-Encoding", "User-Agent"}


def test_what_is_not_there_is_refused_in_heats_words(site):
    error = refusal(f"{site}/none")
    assert (str(error), error.why) == (
        f"Failed to retrieve template from {site}/none",
        "the answer was 404",
    )
    assert str(refusal("http://127.0.0.1:9/")) == "Failed to retrieve template from http://127.0.0.1:9/"


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/y", "gopher://x", "t.yaml", ""])
def test_other_schemes_are_refused(url):
    assert str(refusal(url)) == f"Invalid URL scheme {url.partition(':')[0] if ':' in url else ''}"


@pytest.mark.parametrize("url", ["http://", "http:///x", "http://u:p@127.0.0.1/", "http://[", "http://a:b/"])
def test_an_address_that_is_none_is_refused(url):
    assert str(refusal(url)) == f"Failed to retrieve template from {url}"


def test_a_text_has_as_many_bytes_as_it_may_and_not_one_more(site):
    assert len(Fetcher(OWN_NETWORK)(f"{site}/large/1000")) == 1000
    assert str(refusal(f"{site}/large/1001")) == "Template exceeds maximum allowed size (1000 bytes)"
    assert refusal(f"{site}/bytes").why == "it is no text in UTF-8"


def test_one_that_drips_is_given_up_in_time(site):
    began = time.monotonic()
    error = refusal(f"{site}/drip", Fetched(1000, seconds=0.5, private=True))
    assert took_at_most(began, 8.0)  # the whole answer takes 10 seconds
    assert error.why == "it took longer than 0.5 seconds"


def test_the_time_is_that_of_all_texts_and_so_is_their_number(site):
    fetch = Fetcher(Fetched(1000, seconds=60.0, most=2, private=True))
    fetch(f"{site}/text")
    fetch(f"{site}/text")
    with pytest.raises(CouldNotFetch) as caught:
        fetch(f"{site}/text")
    assert caught.value.why == "a request may make us fetch 2 texts"
    late = Fetcher(Fetched(1000, seconds=3.0, private=True))  # for the first text on a busy machine
    late(f"{site}/text")
    time.sleep(3.1)
    with pytest.raises(CouldNotFetch):
        late(f"{site}/text")


def test_redirects_are_followed_a_few_times(site):
    assert Fetcher(OWN_NETWORK)(f"{site}/again/3").startswith("heat")
    assert refusal(f"{site}/again/5").why == "it leads on more than 5 times"


@pytest.mark.parametrize("there", ["file:///etc/passwd", "ftp://x/y"])
def test_a_redirect_to_another_scheme_is_refused(site, there):
    assert refusal(f"{site}/to/{there}").why == "it leads on to nowhere that may be fetched"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "[64:ff9b::7f00:1]",
    ],
)
def test_nothing_on_this_machine_is_reached(site, host):
    port = site.rpartition(":")[2]
    observed = len(Pages.requests)
    error = refusal(f"http://{host}:{port}/text", Fetched(1000, 5.0))
    assert str(error) == f"Failed to retrieve template from http://{host}:{port}/text"
    assert len(Pages.requests) == observed


def test_a_name_is_what_it_leads_to(site, monkeypatch):
    port = int(site.rpartition(":")[2])

    def found(host: str, *_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    url = f"http://public.example:{port}/text"
    assert refusal(url, Fetched(1000, 5.0)).why == "its address is not a public one"
    assert Fetcher(OWN_NETWORK)(url).startswith("heat")
    assert Pages.requests[-1][1]["Host"] == f"public.example:{port}"


def test_a_file_of_this_machine_is_read_where_that_is_allowed(tmp_path: Path):
    file = tmp_path / "a b.yaml"
    file.write_text("hello")
    url = f"file://{tmp_path}/a%20b.yaml"
    assert Fetcher(OWN_NETWORK)(url, ("file",)) == "hello"
    file.write_text("x" * 1001)
    assert "exceeds maximum" in str(refusal(url, schemes=("file",)))
    assert refusal(f"file://{tmp_path}/none", schemes=("file",)).why
