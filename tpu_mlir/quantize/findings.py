"""What a reader of a checkpoint should tell its user without stopping."""

from core.records import Record


class Finding(Record):
    """One thing that was found to differ from what the checkpoint says about itself, and what was done about it."""

    subject: str
    """The tensor, layer or file it is about."""
    message: str
    """What was said, what was found, what is used."""
