"""Whether loops by OpenMP are there: they are not used."""


def is_available() -> bool:
    """Whether it is there."""
    return False
