"""Errors for people: one paragraph that names the thing, what was found, and the fix."""


class ComplabError(Exception):
    """Something a person must read. The command line prints the message alone, never a traceback.

    Args:
        what: which file, flag, key or tool, and what was found there.
        fix: what would be right, or what to type next.
    """

    exit_code = 1

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(f"{what} {fix}".strip())
        self.what = what
        self.fix = fix


class BadInput(ComplabError):
    """The user's input (file, flag, key, program) cannot be used as it is."""

    exit_code = 2


class InfraError(ComplabError):
    """Our own fault or the machine's, not the candidate's: the only kind of failure that is retried."""
