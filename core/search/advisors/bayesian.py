"""Bayesian optimisation by optuna's tree-structured Parzen estimator."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from core.errors import BadInput
from core.records import Digest, Json, digest_json
from core.search.advisors.bases import gain
from core.search.contract import Proposal, Services, Trial, View
from core.search.space import Choice, IntRange, Payload, Space, Subset

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_TRIES = 50
"""Draws for one new valid proposal, before the space counts as exhausted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BayesianAdvisor:
    """Models which values good settings have, and asks for those. Text and orders stay as the baseline has them."""

    startup: int = 8
    """Trials at random before the model begins."""
    name: str = "bayesian"

    def propose(self, view: View, s: Services) -> Generator[list[Proposal], list[Trial], str | None]:
        """Yield what the model expects most of.

        Raises:
            BadInput: optuna is not installed.
        """
        try:
            import optuna
        except ModuleNotFoundError as error:
            raise BadInput(
                "The bayesian advisor needs optuna, which is not installed.", "Type: pip install 'complab[search]'"
            ) from error
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        space, default = view.space, view.baseline.proposal.payload
        rng = Random(view.seed)
        study = optuna.create_study(
            sampler=optuna.samplers.TPESampler(seed=view.seed, n_startup_trials=0), direction="maximize"
        )
        distributions = _distributions(space)

        def draw() -> Payload:
            """Return a sample, or once there is something to learn from, what the model asks for."""
            if len(seen) <= self.startup:
                return space.sample(rng)
            trial = study.ask(distributions)
            study.tell(trial, state=optuna.trial.TrialState.FAIL)  # what is judged is told with its own parameters
            return _few(space, default, _payload(space, default, trial.params), rng)

        def tell(judged: Trial) -> None:
            params = _params(space, judged.proposal.payload)
            study.add_trial(optuna.trial.create_trial(params=params, distributions=distributions, value=gain(judged)))

        tell(view.baseline)
        seen: set[Digest] = {digest_json(default)}
        while True:
            batch: list[Payload] = []
            for _ in range(_TRIES):
                if len(batch) == view.batch:
                    break
                payload = draw()
                if not space.errors(payload) and digest_json(payload) not in seen:
                    seen.add(digest_json(payload))
                    batch.append(payload)
            if not batch:
                return f"{_TRIES} draws gave nothing new"
            for judged in (yield [Proposal(payload=payload) for payload in batch]):
                tell(judged)


def _few(space: Space, default: Mapping[str, Json], payload: Payload, rng: Random) -> Payload:
    """Return a payload without some of its optional fields, where it sets over twice as many as the space wants.

    The model leaves an option that it knows nothing of on or off by a coin; with many of them that is no proposal.
    """
    extra = [name for name in payload if space.fields[name].optional and name not in default]
    surplus = 0 if space.set_at_once is None else len(extra) - 2 * space.set_at_once
    dropped = set(rng.sample(extra, surplus)) if surplus > 0 else set()
    return {name: value for name, value in payload.items() if name not in dropped}


def _distributions(space: Space) -> "dict[str, BaseDistribution]":
    """Return optuna's domain of each field; a subset is one switch an item, an optional field has one of its own."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    found: dict[str, BaseDistribution] = {}
    for name, domain in space.fields.items():
        match domain:
            case Choice():
                found[name] = CategoricalDistribution(domain.values)
            case IntRange():
                log = domain.scale == "log" and domain.step == 1 and domain.low > 0
                found[name] = IntDistribution(domain.low, domain.high, step=domain.step, log=log)
            case Subset():
                found |= {_switch(name, item): CategoricalDistribution((False, True)) for item in domain.items}
            case _:
                continue
        if domain.optional:
            found[_switch(name)] = CategoricalDistribution((False, True))
    return found


def _switch(name: str, item: str = "") -> str:
    """Return the parameter that says whether a subset has an item, or a payload an optional field."""
    return f"{name}:{item}" if item else f"{name}?"


def _params(space: Space, payload: Mapping[str, Json]) -> dict[str, Any]:
    """Return a payload as optuna's parameters; what it leaves out gets a value that its switch hides."""
    params: dict[str, Any] = {}
    for name, domain in space.fields.items():
        match domain:
            case Choice():
                params[name] = payload.get(name, domain.values[0])
            case IntRange():
                params[name] = payload.get(name, domain.low)
            case Subset():
                chosen = payload.get(name, [])
                assert isinstance(chosen, list)
                params |= {_switch(name, item): item in chosen for item in domain.items}
            case _:
                continue
        if domain.optional:
            params[_switch(name)] = name in payload
    return params


def _payload(space: Space, default: Mapping[str, Json], params: Mapping[str, Any]) -> Payload:
    """Return optuna's parameters as a payload; the fields that it does not model are the default's."""
    payload: Payload = {}
    for name, domain in space.fields.items():
        if not isinstance(domain, Choice | IntRange | Subset):
            if name in default:
                payload[name] = default[name]
        elif params.get(_switch(name), True):
            if isinstance(domain, Subset):
                payload[name] = [item for item in domain.items if params[_switch(name, item)]]
            else:
                payload[name] = params[name]
    return payload
