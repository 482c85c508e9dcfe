"""The llm advisor: a language model reads the evidence and the measured trials, and chooses settings.

Large models propose settings as structured answers. A model too small for that (the packaged one) is asked to choose
among listed options instead, which it answers by the probability of each option's label.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from core.errors import ComplabError
from core.llm.client import Client
from core.llm.prompts import Prompts, Rendered
from core.llm.types import Message
from core.records import Json, Record, digest_json
from core.search.advisors.bases import ModelAdvisor, distinct, gain
from core.search.contract import Evidence, Proposal, Services, Trial, View
from core.search.space import Choice

Style = Literal["choose", "propose"]

MOST_REMARKS = 6
"""Remarks in a choosing prompt: a small model reads little, and each token takes time."""
MOST_OPTIONS = 20
"""Options that one question may list: each has a label of one token."""
ORDERS = 2
"""Orders in which options are listed, to cancel the model's preference for places."""

_PROMPTS = Prompts("llvm_tuning.advisors")


class KnobValue(Record):
    """One knob with its value, as a model writes it."""

    name: Annotated[str, Field(max_length=60)]
    value: Annotated[str, Field(max_length=60)]


class Setting(Record):
    """One proposal of a model."""

    knobs: Annotated[list[KnobValue], Field(min_length=1, max_length=6)]
    reason: Annotated[str, Field(max_length=300)]


class Advice(Record):
    """A model's structured answer."""

    analysis: Annotated[str, Field(max_length=1200)]
    settings: Annotated[list[Setting], Field(min_length=1, max_length=8)]


@dataclass(frozen=True, slots=True)
class LlmAdvisor(ModelAdvisor):
    """Asks the model of the session for settings, round by round."""

    style: Style

    def ask(self, view: View, trials: Sequence[Trial], s: Services) -> list[Proposal]:
        """Return the model's next settings; none when it has nothing new to say.

        Raises:
            ComplabError: the session has no model.
        """
        if s.llm is None:
            raise ComplabError("The llm advisor needs a model.", "Give --model, for example --model local.")
        answer = _choose if self.style == "choose" else _ask
        return distinct(answer(view, trials, s.llm), view.baseline.proposal.payload, known=trials)[: view.batch]


def style_of(client: Client) -> Style:
    """Return how a model is best asked: the packaged small one chooses, others propose."""
    return "choose" if client.model == "local/smollm2-135m" else "propose"


def _choose(view: View, trials: Sequence[Trial], client: Client) -> list[Proposal]:
    """Let the model weigh the knobs that the best setting so far lacks, and take the favourites not tried yet.

    Of a knob's values the next untried one is taken. The question changes only when the best setting does; until then
    the cassette answers it.
    """
    won = [t for t in trials if t.screen is not None and t.screen.decision == "faster"]
    base = dict(max(won, key=gain).proposal.payload) if won else {}
    tried = {digest_json(t.proposal.payload) for t in trials}
    domains = {n: d for n, d in view.space.fields.items() if n not in base and isinstance(d, Choice)}
    names = list(domains)[:MOST_OPTIONS]
    if len(names) < 2:
        return []
    prompt = _PROMPTS.render(
        "choose_knob.j2",
        features=view.evidence.channels.get("features", {}),
        remarks=_remark_lines(view.evidence),
        base=_setting(base),
    )
    scores = client.score(_user(prompt), names, orders=ORDERS, seed=view.seed, templates=(prompt.template,))
    batch: list[Proposal] = []
    for place in scores.ranking:
        name = names[place]
        values = [v for v in domains[name].values if digest_json({**base, name: v}) not in tried]
        if values:
            rationale = f"the model gives {name} {scores.probabilities[place]:.0%} of its weight"
            payload = {**base, name: values[0]}
            batch.append(Proposal(payload=payload, rationale=rationale, exchanges=scores.exchanges))
    return batch


def _ask(view: View, trials: Sequence[Trial], client: Client) -> list[Proposal]:
    """Ask for whole settings; what lies outside the space is answered by the validator, then dropped."""
    prompt = _PROMPTS.render(
        "propose.j2",
        target="x86-64",
        knobs={
            name: {"sets": domain.about, "values": list(domain.values)}
            for name, domain in view.space.fields.items()
            if isinstance(domain, Choice)
        },
        features=view.evidence.channels.get("features", {}),
        missing=view.evidence.missing,
        remarks=view.evidence.channels.get("remarks", []),
        history=[_line(t) for t in trials[-30:]],
        count=view.batch,
    )

    def within_space(advice: Advice) -> None:
        errors = [e for setting in advice.settings for e in view.space.errors(_payload(setting))]
        if errors:
            raise ValueError("; ".join(errors[:4]))

    advice, response = client.structured(Advice, _user(prompt), check=within_space, templates=(prompt.template,))
    return [
        Proposal(payload=_payload(setting), rationale=setting.reason, exchanges=response.exchanges)
        for setting in advice.settings
    ]


def _payload(setting: Setting) -> dict[str, Json]:
    return {knob.name: knob.value for knob in setting.knobs}


def _user(prompt: Rendered) -> list[Message]:
    return [Message(role="user", content=prompt.text)]


def _remark_lines(evidence: Evidence) -> list[str]:
    """Return the remarks that say most about loops and calls, a short line each."""
    remarks = evidence.channels.get("remarks", [])
    assert isinstance(remarks, list)
    lines = []
    for wanted in ("loop-vectorize", "loop-unroll", "slp-vectorizer", "inline", "licm", "gvn", "regalloc"):
        for r in remarks:
            if isinstance(r, dict) and r["pass"] == wanted:
                lines.append(f"{r['pass']} {r['name']} in {r['function']} line {r['line']}, {r['count']} times")
    return lines[:MOST_REMARKS]


def _line(trial: Trial) -> str:
    setting = _setting(trial.proposal.payload)
    if trial.duplicate_of is not None:
        return f"{setting}: same machine code as trial {trial.duplicate_of}"
    if trial.screen is not None:
        return f"{setting}: {trial.screen.ratio:.2f}x, {trial.screen.decision}"
    return f"{setting}: rejected ({trial.verdict.reason})"


def _setting(payload: Mapping[str, Json]) -> str:
    return " ".join(f"{name}={value}" for name, value in payload.items())
