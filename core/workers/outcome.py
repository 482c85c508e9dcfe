"""The end of a call as data: the one place where exceptions of tasks become failures."""

import time
from collections.abc import Callable
from typing import TypeVar

from core.errors import ComplabError, InfraError
from core.workers.task import Attempt, Failure

T = TypeVar("T")


def attempted(key: str, call: Callable[[], T]) -> Attempt[T]:
    """Do a call and return how it ended; interrupts and exits pass through."""
    started = time.monotonic()
    try:
        value = call()
    except InfraError as error:
        failure = Failure(reason="infra_error", message=str(error))
    except ComplabError as error:
        failure = Failure(reason="crash", message=str(error))
    except Exception as error:
        failure = Failure(reason="crash", message=f"{type(error).__name__}: {error}")
    else:
        return Attempt(key=key, value=value, wall_s=time.monotonic() - started)
    return Attempt(key=key, failure=failure, wall_s=time.monotonic() - started)
