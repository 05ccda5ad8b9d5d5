"""A real HTTP server on loopback that misbehaves on purpose."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from coalmine.protocol.errors import GeneratorError, ModelError
from coalmine.server.generate.cache import CachedGenerator
from coalmine.server.generate.collect import collect_samples
from coalmine.server.generate.items import REFUSED
from coalmine.server.generate.openai import OpenAIGenerator

pytestmark = pytest.mark.integration

KEY = "sk-loopback-0123456789"
PRIVATE = "my cat is called Zebulon"


@dataclass
class Server:
    """Answers the n-th request with the n-th plan, the last one for ever after."""

    plans: list[Callable[[dict[str, Any]], tuple[int, dict[str, str], bytes]]] = field(default_factory=list)
    requests: list[tuple[str | None, dict[str, Any], float]] = field(default_factory=list)
    busiest: int = 0
    url: str = ""


def answer(text: str | None = None, **message: Any) -> Callable[[dict[str, Any]], tuple[int, dict[str, str], bytes]]:
    def plan(body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        content = f"text {body['seed']}" if text is None else text
        choice = {"message": {"role": "assistant", "content": content, **message}, "finish_reason": "stop"}
        return 200, {}, json.dumps({"choices": [choice]}).encode()

    return plan


def fail(
    status: int, body: bytes = b"{}", **headers: str
) -> Callable[[dict[str, Any]], tuple[int, dict[str, str], bytes]]:
    return lambda _: (status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


def slow(seconds: float) -> Callable[[dict[str, Any]], tuple[int, dict[str, str], bytes]]:
    def plan(body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        time.sleep(seconds)
        return answer()(body)

    return plan


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    state, lock, busy = Server(), threading.Lock(), [0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                plan = state.plans[min(len(state.requests), len(state.plans) - 1)]
                state.requests.append((self.headers.get("Authorization"), body, time.monotonic()))
                busy[0] += 1
                state.busiest = max(state.busiest, busy[0])
            status, headers, answer_body = plan(body)
            with lock:
                busy[0] -= 1
            try:
                self.send_response(status)
                for name, value in {"Content-Length": str(len(answer_body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if headers.get("X-Drip"):
                    for byte in answer_body:
                        self.wfile.write(bytes([byte]))
                        time.sleep(0.05)
                else:
                    self.wfile.write(answer_body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    state.url = f"http://127.0.0.1:{http.server_port}/v1"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield state
    http.shutdown()
    http.server_close()
    thread.join(5)


def generator(server: Server, **knobs: Any) -> OpenAIGenerator:
    settings: dict[str, Any] = {"concurrency": 4, "timeout": 5.0, "max_attempts": 4, "first_pause": 0.01, **knobs}
    return OpenAIGenerator(server.url, "tiny", **settings)


def test_what_is_sent_and_what_comes_back(server: Server) -> None:
    server.plans = [answer('1. "a quiet day"\nand more')]
    assert generator(server).paraphrase(["a calm day"], 3) == ["a quiet day"]
    authorization, body, _ = server.requests[0]
    assert authorization == f"Bearer {KEY}"
    assert body["model"] == "tiny"
    assert body["messages"][-1] == {"role": "user", "content": "a calm day"}
    assert isinstance(body["seed"], int)


def test_answers_keep_their_place_and_requests_stay_limited(server: Server) -> None:
    server.plans = [slow(0.03)]
    texts = generator(server).sample(["a", "b"] * 12, 1)
    assert texts == generator(server, concurrency=1).sample(["a", "b"] * 12, 1)
    assert len(set(texts)) == 24
    assert 2 <= server.busiest <= 4


def test_passing_failures_are_tried_again(server: Server) -> None:
    server.plans = [fail(500), fail(503), fail(200, b"<html>"), answer("fine")]
    assert generator(server).sample(["x"], 0) == ["fine"]
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    "body", [b'{"choices": []}', b"[]", b'{"choices": [{"message": null}]}', b'{"choices":[{"message":{}}]}']
)
def test_malformed_answers_end_in_a_clear_error(server: Server, body: bytes) -> None:
    server.plans = [fail(200, body)]
    with pytest.raises(GeneratorError, match=r"no chat completion|holds no text") as caught:
        generator(server, max_attempts=2).sample(["x"], 0)
    assert server.url in str(caught.value)
    assert len(server.requests) == 2


@pytest.mark.parametrize("header", ["0.4", "date"])
def test_the_pause_the_server_asks_for_is_kept(server: Server, header: str) -> None:
    value = formatdate(time.time() + 2, usegmt=True) if header == "date" else header
    server.plans = [fail(429, Retry_After=value), answer("fine")]
    assert generator(server).sample(["x"], 0) == ["fine"]
    assert server.requests[1][2] - server.requests[0][2] >= 0.39


def test_a_slow_server_times_out_and_is_asked_again(server: Server) -> None:
    server.plans = [slow(1.0), answer("fine")]
    assert generator(server, timeout=0.3).sample(["x"], 0) == ["fine"]


def test_a_dripping_server_times_out(server: Server) -> None:
    server.plans = [fail(200, b" " * 200, X_Drip="1")]
    start = time.monotonic()
    with pytest.raises(GeneratorError, match=r"took longer than 0\.3 s"):
        generator(server, timeout=0.3, max_attempts=1).sample(["x"], 0)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("status", "kind", "says"),
    [(401, ModelError, "OPENAI_API_KEY"), (404, ModelError, "'tiny'"), (400, GeneratorError, "chat completions")],
)
def test_lasting_failures_stop_at_once(server: Server, status: int, kind: type[Exception], says: str) -> None:
    server.plans = [fail(status, json.dumps({"error": f"{PRIVATE} {KEY}"}).encode())]
    with pytest.raises(kind, match=says) as caught:
        generator(server, concurrency=1).paraphrase([PRIVATE] * 50, 0)
    message = str(caught.value)
    assert str(status) in message
    assert server.url in message
    assert KEY not in message
    assert PRIVATE not in message
    assert len(server.requests) <= 2


def test_a_server_that_is_down_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    down = OpenAIGenerator(f"http://127.0.0.1:{port}/v1", "tiny", max_attempts=2, first_pause=0.01)
    with pytest.raises(GeneratorError, match=rf"127\.0\.0\.1:{port}/v1: the server cannot be reached .*server up"):
        down.sample(["x"], 0)


def test_the_key_is_neither_shown_nor_logged(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.plans = [fail(500), answer("fine")]
    asked = generator(server)
    with caplog.at_level("DEBUG"):
        asked.paraphrase([PRIVATE], 0)
    assert KEY not in caplog.text + repr(asked) + asked.id
    assert PRIVATE not in caplog.text


def test_no_key_sends_none(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    server.plans = [answer("fine")]
    generator(server).sample(["x"], 0)
    assert server.requests[0][0] is None


def test_refusals_are_judged_as_such(server: Server) -> None:
    server.plans = [answer(None, refusal="not my job"), answer("I cannot help with that."), answer()]
    assert generator(server).sample(["x"], 0) == [REFUSED]
    pool = collect_samples(generator(server, concurrency=1), ["x"], 5, 0)
    assert pool.tally.refused == 1
    assert len(pool.texts) == 5


def test_texts_that_arrived_before_a_failure_are_kept(server: Server, tmp_path: Path) -> None:
    server.plans = [answer(), answer(), fail(400)]
    with pytest.raises(GeneratorError):
        CachedGenerator(generator(server, concurrency=1), tmp_path).sample(["x"] * 5, 0)
    kept = len(server.requests)
    server.plans = [answer()]
    CachedGenerator(generator(server, concurrency=1), tmp_path).sample(["x"] * 5, 0)
    assert len(server.requests) - kept == 3


@pytest.mark.parametrize("url", ["localhost:80", "ftp://x/v1", "http://user:word@127.0.0.1/v1", "http://h/v1?key=abc"])
def test_unusable_addresses_are_refused_without_showing_them(url: str) -> None:
    with pytest.raises(ModelError, match=r"generator\.base_url") as caught:
        OpenAIGenerator(url, "tiny")
    assert "word" not in str(caught.value).replace("a password", "")
