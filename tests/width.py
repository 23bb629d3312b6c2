"""How much random tests try: `pytest --full`, which `make test-full` runs, multiplies it."""

FACTOR = 10
#: Set from the command line, before modules of tests are imported.
full = False


def tries(usual: int) -> int:
    """How often a test marked `wide` tries something that usually is tried that often."""
    return usual * FACTOR if full else usual
