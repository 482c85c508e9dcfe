"""Scoring a closed set of options by the probability of one-token labels. Pure; `Client.score` makes the calls."""

import math
import random
from collections.abc import Sequence
from typing import Final

from core.llm.errors import NoLogprobs
from core.llm.prompts import visible
from core.llm.types import TokenLogprob

LABELS: Final = tuple("ABCDEFGHIJKLMNOPQRST")
"""One token each in the vocabularies that we know of; at most so many options."""

UNSEEN_LIMIT: Final = 0.1
"""Largest share of the label mass that may lie in labels which the endpoint did not show."""

_OPTION_CAP_CHARS: Final = 300


def orders_of(options: int, count: int, seed: int) -> list[tuple[int, ...]]:
    """Return distinct orders of option indices: a seeded shuffle, rotated in even steps.

    Rotation puts each option at `count` different places spread over the list, which cancels position bias faster
    than independent shuffles, and exactly when `count` equals `options`.
    """
    base = list(range(options))
    random.Random(seed).shuffle(base)
    count = min(count, options)
    shifts = [round(step * options / count) for step in range(count)]
    return [tuple(base[shift:] + base[:shift]) for shift in shifts]


def question_text(options: Sequence[str], order: Sequence[int]) -> str:
    """Return the part of the prompt that lists the options in an order. It comes last: orders share a prefix."""
    lines = [f"{LABELS[place]}. {one_line(options[index])}" for place, index in enumerate(order)]
    return "Options:\n" + "\n".join(lines) + f"\nAnswer with one letter, {LABELS[0]} to {LABELS[len(order) - 1]}."


def one_line(option: str) -> str:
    """Return an option's text as one visible line of bounded length."""
    return " ".join(visible(option).split())[:_OPTION_CAP_CHARS]


def label_logprobs(top: Sequence[TokenLogprob], labels: Sequence[str], endpoint: str) -> tuple[list[float], float]:
    """Return the normalised log-probability of each label, and a bound on the mass of labels that were not shown.

    Spellings of one label (with and without a space before it) are added up. A label that is not among the shown tokens
    has at most the probability of the least likely shown one, and is given that.

    Raises:
        NoLogprobs: no log-probabilities, no label among them, no distribution, or too much mass unseen: scores
            from such an answer would be chance.
    """
    fix = "Use a model behind an endpoint that gives top_logprobs (the local model does), or ask with `structured`."
    if not top:
        raise NoLogprobs(f"{endpoint} gives no first-token log-probabilities, so it cannot score options.", fix)
    mass = dict.fromkeys(labels, 0.0)
    for entry in top:
        label = entry.token.strip("Ġ▁ \n\t\"'")
        if label in mass:
            mass[label] += math.exp(entry.logprob)
    shown = sum(mass.values())
    missing = [label for label in labels if mass[label] <= 0.0]
    if shown <= 0.0:
        raise NoLogprobs(
            f"{endpoint}: none of the labels {labels[0]} to {labels[-1]} is among its likely first tokens.", fix
        )
    if sum(math.exp(entry.logprob) for entry in top) > 1.01:
        raise NoLogprobs(f"{endpoint} gives log-probabilities that add up to more than 1: it made them up.", fix)
    floor = math.exp(min(entry.logprob for entry in top))
    unseen = floor * len(missing) / (shown + floor * len(missing))
    if unseen > UNSEEN_LIMIT:
        raise NoLogprobs(
            f"{endpoint} shows only {len(top)} first tokens; the {len(missing)} labels it does not show may hold "
            f"{unseen:.0%} of the probability (at most {UNSEEN_LIMIT:.0%} is accepted).",
            "Ask with fewer options, or use an endpoint that gives more top_logprobs.",
        )
    full = [math.log(mass[label] or max(floor, 5e-324)) for label in labels]
    total = _log_sum(full)
    return [value - total for value in full], unseen


def combine(
    per_order: Sequence[Sequence[float]], orders: Sequence[Sequence[int]], options: int
) -> tuple[tuple[float, ...], float]:
    """Return probabilities by option, and the share of orders whose favourite is the overall favourite.

    Log-probabilities are averaged, not probabilities: a bias that multiplies the odds of a place then cancels.
    """
    sums = [0.0] * options
    for logprobs, order in zip(per_order, orders, strict=True):
        for place, index in enumerate(order):
            sums[index] += logprobs[place] / len(orders)
    total = _log_sum(sums)
    probabilities = tuple(math.exp(value - total) for value in sums)
    best = max(range(options), key=lambda index: probabilities[index])
    agreeing = sum(
        logprobs[order.index(best)] >= max(logprobs) - 1e-9 for logprobs, order in zip(per_order, orders, strict=True)
    )
    return probabilities, agreeing / len(orders)


def _log_sum(values: Sequence[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))
