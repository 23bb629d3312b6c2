"""Whether Apple's devices are there: they are not used."""


def is_available() -> bool:
    """Whether it is there."""
    return False


def is_built() -> bool:
    """Whether there is code for it."""
    return False
