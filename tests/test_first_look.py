"""What somebody sees who looks around: names and fields."""

import pytest

import wengert

INTERNAL = {"core", "tape", "dispatch", "operators", "creation", "transforms"}


@pytest.mark.compiled_only  # the source has plain attributes
@pytest.mark.parametrize("field", ["node", "inference"])
def test_fields_of_the_inside_are_not_written(field):
    """A program that gives a tensor an attribute of this name must not break it."""
    x = wengert.ones(2, requires_grad=True)
    with pytest.raises(AttributeError):
        setattr(x, field, None)
    assert wengert.autograd.grad((x * x).sum(), x)[0].tolist() == [2.0, 2.0]


def test_dir_shows_what_is_public():
    assert not INTERNAL & set(dir(wengert))
    assert {"Function", "functional", "detect_anomaly"} <= set(dir(wengert.autograd))
