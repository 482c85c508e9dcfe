"""A bounded loop of actions: the model picks one action of a closed union, the caller performs it and reports back.

The caller drives, so that an advisor can `yield` proposals between two steps:

    loop = ActionLoop(client, messages, (Inspect, Try, Finish), max_steps=8)
    action = loop.ask()
    while action is not None:
        action = loop.observe(perform(action))
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, Field, create_model

from core.llm.client import Client
from core.llm.errors import BudgetExceeded, InvalidOutput
from core.llm.prompts import fence
from core.llm.types import GenParams, Message, TemplateRef
from core.records import Digest

Stop = Literal["finished", "steps", "repairs", "invalid", "budget"]
"""Why a loop ended: the caller finished it, too many steps, too many refused actions, no valid answer, no budget."""


class ActionLoop:
    """Asks for one action at a time until a bound is reached.

    Actions are pydantic models with a field `kind: Literal["..."]` that tells them apart. Native tools of providers
    are not used: a union enforced by schema works the same with every model.

    Args:
        client: the model.
        messages: the task; what the loop adds comes after.
        actions: the closed set of actions.
        max_steps: actions asked for at most.
        max_repairs: refused actions at most.
        params: sampling; None: greedy, as many tokens as the largest action needs.
        templates: where the messages come from.
    """

    def __init__(
        self,
        client: Client,
        messages: Sequence[Message],
        actions: Sequence[type[BaseModel]],
        *,
        max_steps: int = 8,
        max_repairs: int = 2,
        params: GenParams | None = None,
        templates: tuple[TemplateRef, ...] = (),
    ) -> None:
        if not actions or max_steps < 1:
            raise ValueError("a loop needs actions and at least one step")
        union: Any = Union[tuple(actions)]  # noqa: UP007 - built at run time
        if len(actions) > 1:
            union = Annotated[union, Field(discriminator="kind")]
        self._step: type[BaseModel] = create_model("Step", action=(union, ...))
        self._client = client
        self._messages = list(messages)
        self._max_steps = max_steps
        self._repairs_left = max_repairs
        self._params = params
        self._templates = templates
        self.steps = 0
        """Actions that the model chose, refused ones included."""
        self.exchanges: tuple[Digest, ...] = ()
        """Keys of all exchanges so far."""
        self.stopped: Stop | None = None
        """Why the loop ended, or None while it runs."""

    def ask(self) -> BaseModel | None:
        """Return the model's next action, or None when the loop has ended (`stopped` says why)."""
        if self.stopped is not None:
            return None
        if self.steps >= self._max_steps:
            self.stopped = "steps"
            return None
        try:
            step, response = self._client.structured(
                self._step, self._messages, params=self._params, templates=self._templates
            )
        except InvalidOutput as error:
            self.exchanges += error.exchanges
            self.stopped = "invalid"
            return None
        except BudgetExceeded:
            self.stopped = "budget"
            return None
        self.steps += 1
        self.exchanges += response.exchanges
        self._messages.append(Message(role="assistant", content=response.text))
        action: BaseModel = step.action  # type: ignore[attr-defined]
        return action

    def observe(self, observation: Any) -> BaseModel | None:
        """Tell what came of the last action (fenced: it is data) and return the next one."""
        self._messages.append(Message(role="user", content=f"Result of the action, as data: {fence(observation)}"))
        return self.ask()

    def refuse(self, reason: str) -> BaseModel | None:
        """Say why the last action cannot be performed and return the next one; at most `max_repairs` times."""
        if self._repairs_left == 0:
            self.stopped = "repairs"
            return None
        self._repairs_left -= 1
        self._messages.append(Message(role="user", content=f"The action was refused: {fence(reason)} Choose another."))
        return self.ask()

    def finish(self) -> None:
        """End the loop: the task is done."""
        self.stopped = self.stopped or "finished"
