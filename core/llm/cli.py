"""`complab llm`: look at a model before trusting a run to it."""

import click

from core.console import write_json
from core.options import json_option


@click.group()
def llm() -> None:
    """Models: what they can do and what they cost."""


@llm.command()
@click.argument("model")
@click.option("--api-base", help="Address of an OpenAI-compatible endpoint, ending in /v1.")
@click.option("--max-usd", type=click.FloatRange(min=0), help="Dollar limit; no call is begun that could pass it.")
@click.option("--price", metavar="IN,OUT", help="Dollars per million prompt and completion tokens.")
@click.option("--allow-unpriced", is_flag=True, help="Take a model of unknown price.")
@json_option
@click.pass_context
def check(
    ctx: click.Context,
    model: str,
    api_base: str | None,
    max_usd: float | None,
    price: str | None,
    allow_unpriced: bool,
    json_to: str | None,
) -> None:
    """Try MODEL in under a minute: structured answers, actions, option scoring, latency, price."""
    from core.llm.check import CheckReport, check_estimate
    from core.llm.check import check as run_check
    from core.llm.models import open_client, parse_price
    from core.llm.retry import RetryPolicy

    patience = RetryPolicy(attempts=3, attempt_s=30, total_s=40)
    given = None if price is None else parse_price(price)
    with open_client(
        model, api_base=api_base, max_usd=max_usd, price=given, allow_unpriced=allow_unpriced, retry=patience
    ) as client:
        worst = check_estimate(client)
        if worst.usd != 0:
            click.echo(worst.text, err=True)
        report: CheckReport = run_check(client)
    if json_to is not None:
        write_json(report.model_dump(mode="json"), json_to)
    else:
        for item in report.items:
            click.echo(f"{'ok  ' if item.ok else 'FAIL'}  {item.name:<11} {item.seconds:6.2f} s  {item.detail}")
        latency = "none" if report.latency_s is None else f"{report.latency_s:.2f} s"
        spent = "unknown" if report.usage.usd is None else f"${report.usage.usd:.6f}"
        click.echo(f"latency {latency}, {report.usage.tokens} tokens in {report.usage.calls} calls, cost {spent}")
        click.echo(f"price   {report.price}")
    ctx.exit(0 if report.ok else 1)
