"""The chat-completions wire format: request to body, body to reply. Pure functions, shared by the HTTP transports."""

import math
from typing import Any

from pydantic import ValidationError

from core.llm.errors import EndpointError
from core.llm.schema import wire_schema
from core.llm.types import Capabilities, Finish, Reply, Request, TokenLogprob
from core.records import Json, canonical_json

_FINISH: dict[str, Finish] = {"stop": "stop", "eos": "stop", "length": "length", "max_tokens": "length"}


def body_of(request: Request, model: str, capabilities: Capabilities) -> dict[str, Any]:
    """Return the JSON body of a request, with only those fields that the endpoint is known to take."""
    params = request.params
    body: dict[str, Any] = {
        "model": model,
        "messages": [message.model_dump() for message in request.messages],
        "temperature": params.temperature,
        "top_p": params.top_p,
        "seed": params.seed,
        "max_tokens": params.max_tokens,
    }
    if params.stop:
        body["stop"] = list(params.stop)
    if params.top_logprobs:
        body["logprobs"] = True
        body["top_logprobs"] = min(params.top_logprobs, capabilities.top_logprobs)
    spec = request.response
    if spec is not None and spec.json_schema is not None:
        schema = wire_schema(spec.json_schema)
        if capabilities.json_schema:
            form = {"name": "answer", "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        else:  # the endpoint cannot be told, so the model is
            order = "Answer with one JSON object that fits this JSON schema, and nothing else:"
            body["messages"][-1]["content"] += f"\n\n{order}\n{canonical_json(schema).decode()}"
    if spec is not None and spec.labels is not None and capabilities.label_grammar:
        body["grammar"] = "root ::= " + " | ".join(f'"{label}"' for label in spec.labels)
    return body


def reply_of(data: Any, request: Request, engine: dict[str, Json]) -> Reply:
    """Return the reply in a decoded response body.

    Raises:
        EndpointError: cause `protocol`: the body is not a chat completion.
    """
    try:
        if "choices" not in data and "error" in data:
            raise EndpointError(
                f"{_endpoint(engine)} answered with an error: {str(data['error'])[:300]}", cause="protocol"
            )
        choice = data["choices"][0]
        text = choice["message"].get("content") or ""
        usage = data.get("usage") or {}
        counted = "prompt_tokens" in usage and "completion_tokens" in usage
        return Reply(
            text=text,
            finish=_FINISH.get(str(choice.get("finish_reason")), "other"),
            prompt_tokens=usage["prompt_tokens"] if counted else prompt_tokens_bound(request),
            completion_tokens=usage["completion_tokens"] if counted else -(-len(text.encode()) // 2),
            top_logprobs=_top_logprobs(choice.get("logprobs")),
            engine=engine
            | {"served_model": str(data.get("model") or "")}
            | ({} if counted else {"usage": "estimated from bytes"}),
        )
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, ValidationError) as error:
        raise EndpointError(
            f"{_endpoint(engine)} answered something that is not a chat completion ({type(error).__name__}: {error}).",
            "Check that the address is that of an OpenAI-compatible /v1 endpoint.",
            cause="protocol",
        ) from error


def prompt_tokens_bound(request: Request) -> int:
    """Return a bound on the prompt tokens that holds for ordinary text: half its bytes, and some for the template."""
    return 16 + sum(8 + -(-len(message.content.encode()) // 2) for message in request.messages)


def _top_logprobs(logprobs: Any) -> tuple[TokenLogprob, ...]:
    if not isinstance(logprobs, dict) or not logprobs.get("content"):
        return ()
    entries = logprobs["content"][0].get("top_logprobs") or []
    found = [
        TokenLogprob(token=entry["token"], logprob=min(0.0, entry["logprob"]))
        for entry in entries
        if entry.get("logprob") is not None and math.isfinite(entry["logprob"])
    ]
    return tuple(sorted(found, key=lambda entry: -entry.logprob))


def _endpoint(engine: dict[str, Json]) -> str:
    return str(engine.get("endpoint") or engine.get("adapter") or "the endpoint")
