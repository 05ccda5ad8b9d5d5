"""Any server that speaks OpenAI's chat completions.

Prompts go to that server: point it only at one that may see the texts to be reworded. Answers are not reproducible in
general (a server may ignore the seed it is given); kept in a cache they are.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from coalmine.protocol.errors import GeneratorError, ModelError
from coalmine.server.generate.items import REFUSED, Item, ItemGenerator, fingerprint
from coalmine.server.generate.prompts import messages, tidy

if TYPE_CHECKING:
    import httpx
    import tenacity

_LARGEST_ANSWER = 1 << 20
_LONGEST_PAUSE = 60.0
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Status codes that may pass when the request is repeated."""


class _Passing(Exception):
    """A failure that may pass. ``pause`` is what the server asked for, in seconds."""

    def __init__(self, what: str, pause: float | None = None) -> None:
        super().__init__(what)
        self.pause = pause


@dataclass(frozen=True)
class OpenAIGenerator(ItemGenerator):
    """Asks a chat-completions server, several requests at a time.

    Attributes:
        base_url: e.g. ``http://127.0.0.1:8080/v1``; without user name or password.
        model: the server's name for the model.
        api_key_env: environment variable that holds the key; unset, none is sent. The key is never shown or logged.
        concurrency: requests under way at once, >= 1.
        timeout: seconds for one whole answer.
        max_attempts: tries per text, >= 1. Errors 429 and 5xx, time-outs, broken connections and malformed answers
            are tried again,
            after growing pauses or the one the server asks for.
        temperature: sampling temperature sent along.
        first_pause: seconds before the second try; doubles from try to try.

    Raises:
        ModelError: an unusable setting, key or model name.
        GeneratorError: the server keeps failing.
    """

    base_url: str
    model: str
    api_key_env: str = "OPENAI_API_KEY"
    concurrency: int = 8
    timeout: float = 60.0
    max_attempts: int = 6
    temperature: float = 0.9
    first_pause: float = 1.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ModelError(
                "not an address of a server", where="generator.base_url", remedy="like http://127.0.0.1:8080/v1"
            )
        if parts.username or parts.password or parts.query:
            raise ModelError(
                "the address holds a user name, a password or a query",
                where="generator.base_url",
                remedy=f"give the key in the environment variable {self.api_key_env}",
            )
        for name, value in (("concurrency", self.concurrency), ("max_attempts", self.max_attempts)):
            if value < 1:
                raise ModelError(f"{value} is too small", where=f"generator.{name}", remedy="at least 1")
        if self.timeout <= 0:
            raise ModelError(f"{self.timeout} is too short", where="generator.timeout", remedy="more than 0 seconds")

    @property
    def id(self) -> str:
        """openai/server/model/temperature/digest of the prompts; the weights behind a server cannot be known."""
        place = urlsplit(self.base_url)
        return f"openai/{place.netloc}{place.path.rstrip('/')}/{self.model}/{self.temperature:g}/{_prompts()}"

    def write(self, items: Sequence[Item]) -> Iterator[Mapping[int, str]]:
        """Texts in the order in which they arrive. After a failure no further request starts."""
        import httpx

        stop = threading.Event()
        limits = httpx.Limits(max_connections=self.concurrency, max_keepalive_connections=self.concurrency)
        with httpx.Client(timeout=self.timeout, limits=limits, auth=self._authorise) as client:
            pool = ThreadPoolExecutor(self.concurrency, thread_name_prefix="generate")
            try:
                futures = {pool.submit(self._complete, client, item, stop): index for index, item in enumerate(items)}
                for future in as_completed(futures):
                    yield {futures[future]: future.result()}
            finally:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)

    def _authorise(self, request: httpx.Request) -> httpx.Request:
        if key := os.environ.get(self.api_key_env):
            request.headers["Authorization"] = f"Bearer {key}"
        return request

    def _complete(self, client: httpx.Client, item: Item, stop: threading.Event) -> str:
        import tenacity

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_Passing),
            stop=tenacity.stop_any(tenacity.stop_after_attempt(self.max_attempts), tenacity.stop_when_event_set(stop)),
            wait=self._pause,
            sleep=tenacity.sleep_using_event(stop),
            reraise=True,
        )
        try:
            return retrying(self._ask, client, item)
        except _Passing as failure:
            raise GeneratorError(
                f"{failure}, {self.max_attempts} times in a row",
                where=self.base_url,
                remedy="is the server up and the address right? else raise generator.timeout, or lower "
                "generator.concurrency",
            ) from None

    def _pause(self, state: tenacity.RetryCallState) -> float:
        failure = state.outcome.exception() if state.outcome else None
        if isinstance(failure, _Passing) and failure.pause is not None:
            return min(failure.pause, _LONGEST_PAUSE)
        return float(min(self.first_pause * 2 ** (state.attempt_number - 1), _LONGEST_PAUSE))

    def _ask(self, client: httpx.Client, item: Item) -> str:
        import httpx

        body = {
            "model": self.model,
            "messages": messages(item),
            "temperature": self.temperature,
            "max_tokens": 160,
            "seed": int(item.stream().integers(2**31)),
        }
        deadline = time.monotonic() + self.timeout
        received = bytearray()
        try:
            with client.stream("POST", f"{self.base_url.rstrip('/')}/chat/completions", json=body) as response:
                for chunk in response.iter_bytes():
                    received += chunk
                    if time.monotonic() > deadline:
                        raise _Passing(f"the server took longer than {self.timeout:g} s")
                    if len(received) > _LARGEST_ANSWER:
                        raise _Passing("the server's answer is too long")
        except httpx.TimeoutException:
            raise _Passing(f"the server did not answer within {self.timeout:g} s") from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise _Passing(f"the server cannot be reached ({type(error).__name__})") from None
        if response.status_code != 200:
            raise self._failure(response)
        return _text(bytes(received))

    def _failure(self, response: httpx.Response) -> Exception:
        """What an answer other than 200 means. The body is not shown: servers echo prompts in it."""
        status = response.status_code
        if status in _PASSING:
            return _Passing(f"the server answers {status}", _asked_pause(response.headers.get("Retry-After")))
        if status in (401, 403):
            known = "the key there is not accepted" if os.environ.get(self.api_key_env) else "it is not set"
            return ModelError(
                f"the server answers {status}: it wants a valid key",
                where=self.base_url,
                remedy=f"put one into the environment variable {self.api_key_env} ({known})",
            )
        if status == 404:
            return ModelError(
                f"the server answers 404: it does not know the model {self.model!r}, or the address is wrong",
                where=self.base_url,
                remedy="check generator.model and generator.base_url (most addresses end in /v1)",
            )
        return GeneratorError(
            f"the server answers {status}", where=self.base_url, remedy="check that it speaks OpenAI's chat completions"
        )


def _text(received: bytes) -> str:
    """The text of a completion; `REFUSED` where the model or a filter declined."""
    try:
        answer: Any = json.loads(received)
        choice = answer["choices"][0]
        message = choice["message"]
        content, refusal = message.get("content"), message.get("refusal")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        raise _Passing("the server's answer is no chat completion") from None
    if refusal or choice.get("finish_reason") == "content_filter":
        return REFUSED
    if not isinstance(content, str):
        raise _Passing("the server's answer holds no text")
    return tidy(content)


def _asked_pause(header: str | None) -> float | None:
    """Seconds of a Retry-After header: a number, or a date."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _prompts() -> str:
    return fingerprint(Path(__file__).with_name("prompts.py"))
