"""In CI a test that is skipped has failed: a missing tool or model must not hide what was to be checked."""

import os
from collections.abc import Generator
from typing import Any

import pytest

HARDWARE = "hardware: "
"""The one excuse: a skip whose reason begins so names hardware that no set-up can install, such as a GPU."""


def _refuse_skip(report: Any) -> None:
    if os.environ.get("CI") != "true" or report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = (
        report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else str(report.longrepr)
    )
    if not reason.startswith(HARDWARE):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped, which CI does not accept: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report
