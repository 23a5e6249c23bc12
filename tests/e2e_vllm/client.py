"""Requests to a vLLM server, also those whose client hangs up, and what came back of each."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT = 180
BEFORE_HANGING_UP = 0.02
PROMPTS = ("system", "messages", "prompt", "input")
ENVELOPE = (
    *("id", "object", "type", "created", "created_at", "model"),
    *("service_tier", "status", "system_fingerprint", "stop_reason"),
)


@dataclass(frozen=True)
class Send:
    """One request.

    Attributes:
        path: of the endpoint.
        body: the JSON.
        hangs_up: after how many SSE lines the client closes; 0 at once; None never.
    """

    path: str
    body: dict[str, Any] = field(default_factory=dict)
    hangs_up: int | None = None

    def but(self, **changes: Any) -> Send:
        return Send(self.path, self.body | changes, self.hangs_up)


class Client:
    """Sends to one server.

    Args:
        port: on loopback.
    """

    def __init__(self, port: int) -> None:
        self._port = port

    def metrics(self) -> str:
        return self._call("GET", "/metrics")[1]

    def version(self) -> str:
        version: str = json.loads(self._call("GET", "/version")[1])["version"]
        return version

    def together(self, sends: list[Send]) -> list[dict[str, Any]]:
        """Sends all at the same time."""
        found: list[dict[str, Any]] = [{} for _ in sends]

        def one(place: int) -> None:
            found[place] = self.send(sends[place])

        threads = [Thread(target=one, args=(place,)) for place in range(len(sends))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def send(self, send: Send) -> dict[str, Any]:
        """Sends, and says what happened as a request of `steps.json` does."""
        counted = self._tokens(send)
        if send.body.get("stream"):
            status, usage, reply = self._stream(send)
        else:
            status, text = self._call("POST", send.path, send.body)
            usage, reply = _answered(_json(text))
        options = {name: value for name, value in send.body.items() if name not in (*PROMPTS, "model")}
        prompt = send.body.get("prompt")
        if isinstance(prompt, list) and isinstance(prompt[0], str):
            options["prompts"] = len(prompt)
        texts = [send.body[name] for name in PROMPTS if name in send.body]
        found = {
            "path": send.path,
            "options": options,
            "prompt_sha256": sha256(json.dumps(texts).encode()).hexdigest()[:12],
            "prompt_tokens": counted,
            "status": status,
            "aborted_after": send.hangs_up,
            "usage": usage,
            "reply": reply,
        }
        absent = {name for name in ("prompt_tokens", "aborted_after") if found[name] is None}
        return {name: value for name, value in found.items() if name not in absent}

    def _tokens(self, send: Send) -> int | None:
        """The prompt's tokens as the server counts them, for those requests whose usage may not tell."""
        turns = _turns(send.body)
        if turns:
            asked = {"model": "tiny", "messages": turns, "add_generation_prompt": True}
        elif isinstance(send.body.get("prompt"), str) and send.path != "/tokenize":
            asked = {"model": "tiny", "prompt": send.body["prompt"]}
        else:
            return None
        count: int = json.loads(self._call("POST", "/tokenize", asked)[1])["count"]
        return count

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, str]:
        connection = self._request(method, path, body)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        connection.close()
        return answer.status, text

    def _request(self, method: str, path: str, body: dict[str, Any] | None) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT)
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"Content-Type": "application/json"})
        return connection

    def _stream(self, send: Send) -> tuple[int | None, dict[str, Any] | None, dict[str, Any]]:
        connection = self._request("POST", send.path, send.body)
        if send.hangs_up == 0:
            time.sleep(BEFORE_HANGING_UP)
            connection.close()
            return None, None, {}
        answer = connection.getresponse()
        usage: dict[str, Any] | None = None
        reply: dict[str, Any] = {}
        for number, event in enumerate(_events(answer), 1):
            said, envelope = _answered(event)
            usage = said or usage
            reply = reply | envelope
            if number == send.hangs_up:
                break
        answer.close()
        connection.close()
        return answer.status, usage, reply


def _turns(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The conversation that a body of any of the chat endpoints stands for; empty where it is none."""
    system = [{"role": "system", "content": body["system"]}] if "system" in body else []
    asked = [{"role": "user", "content": body["input"]}] if "input" in body else body.get("messages", [])
    return [*system, *asked]


def _events(answer: http.client.HTTPResponse) -> Iterator[Any]:
    for line in answer:
        text = line.decode("utf-8", "replace").strip()
        if text.startswith("data:"):
            yield _json(text.removeprefix("data:"))


def _answered(content: Any) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """The usage object and the envelope of a body, or of one event of a stream."""
    if not isinstance(content, dict):
        return None, {}
    if "error" in content:
        return None, {"error": {name: content["error"].get(name) for name in ("type", "code", "param")}}
    inner = content.get("response") or content.get("message") or content
    if "usage" not in content and "id" not in inner:
        return None, {}
    return content.get("usage") or inner.get("usage"), {name: inner[name] for name in ENVELOPE if name in inner}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
