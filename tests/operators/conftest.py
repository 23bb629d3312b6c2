"""Settings of the oracle tests."""

from hypothesis import settings

settings.register_profile("operators", deadline=None, derandomize=True, max_examples=8)
settings.load_profile("operators")
