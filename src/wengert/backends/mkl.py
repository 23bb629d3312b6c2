"""Whether Intel's library for matrices is there: it is not used."""


def is_available() -> bool:
    """Whether it is there."""
    return False
