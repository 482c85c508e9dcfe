"""A model made of prepared replies: deterministic, free, and able to fail in every way that real ones do."""

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from core.errors import BadInput
from core.llm.adapters.openai_format import prompt_tokens_bound
from core.llm.errors import EndpointError
from core.llm.types import Capabilities, Price, Reply, Request

Scene = str | Reply | EndpointError
"""A text to answer, a whole reply (a truncated one, say), or a failure to raise."""


class Scripted:
    """Plays scenes in order, or whatever a function of the request returns.

    Args:
        script: scenes, or a function from request to scene. When the scenes are used up, a call fails.
        capabilities: what the pretended endpoint can do.
        price: of the pretended model.
    """

    def __init__(
        self,
        script: Sequence[Scene] | Callable[[Request], Scene],
        *,
        capabilities: Capabilities | None = None,
        price: Price | None = None,
    ) -> None:
        self._script = script
        self._capabilities = capabilities or Capabilities(label_grammar=True)
        self._price = price or Price(prompt=0, completion=0, source="scripted")
        self._lock = threading.Lock()
        self.asked: list[Request] = []
        """Every request that came, in order."""

    @property
    def name(self) -> str:
        """`scripted`."""
        return "scripted"

    @property
    def capabilities(self) -> Capabilities:
        """As given."""
        return self._capabilities

    @property
    def price(self) -> Price | None:
        """As given; zero when none was."""
        return self._price

    def call(self, request: Request, timeout_s: float) -> Reply:
        """Play the next scene."""
        with self._lock:
            turn = len(self.asked)
            self.asked.append(request)
        if callable(self._script):
            scene = self._script(request)
        elif turn < len(self._script):
            scene = self._script[turn]
        else:
            raise EndpointError(f"the script has {turn} scenes and was asked for one more.", cause="bad_request")
        if isinstance(scene, EndpointError):
            raise scene
        if isinstance(scene, Reply):
            return scene
        return Reply(
            text=scene,
            finish="stop",
            prompt_tokens=prompt_tokens_bound(request),
            completion_tokens=-(-len(scene) // 4),
            engine={"adapter": self.name},
        )

    def close(self) -> None:
        """Do nothing."""


def script_from_file(path: Path) -> list[Scene]:
    """Read scenes from a JSON file: a list of texts and of replies as objects.

    Raises:
        BadInput: the file cannot be read or is not such a list.
    """
    try:
        scenes = TypeAdapter(list[str | Reply]).validate_python(json.loads(path.read_text()))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}).", "Give scripted/PATH of a JSON file.") from error
    except (ValueError, ValidationError) as error:
        raise BadInput(f"{path}: not a script ({error}).", "It is a JSON list of texts and reply objects.") from error
    return list(scenes)
