"""Errors have PyTorch's words, and what one needs to know: operator, argument, shapes, values."""

import warnings

import pytest

import wengert
from wengert.nn import functional as F

X = wengert.ones(2, 3)
FACTS = {
    "dimension": (lambda: X.sum(5), r"Dimension out of range \(expected to be in range of "
                  r"\[-2, 1\], but got 5\): sum\(\) got a tensor of shape \[2, 3\]"),
    "dimension of a list": (lambda: wengert.cat([X, X], 4), r"cat\(\) got a tensor of shape"),
    "dimension of a composite": (lambda: X.softmax(3), r"softmax\(\) got a tensor of shape"),
    "dimension of a method": (lambda: X.size(5), r"size\(\) got a tensor of shape \[2, 3\]"),
    "rows": (lambda: F.embedding(wengert.tensor([1, 5]), X),
             r"index out of range in self: embedding\(\) got the index 5, and weight has 2 rows"),
    "negative row": (lambda: F.embedding(wengert.tensor([-1]), X), "got the index -1"),
    "largest": (lambda: X.topk(9), r"selected index k out of range: topk\(\) got k=9 for "
                r"dimension 1 of size 3 of a tensor of shape \[2, 3\]"),
    "classes": (lambda: F.nll_loss(X, wengert.tensor([0, 7])),
                "Target 7 is out of bounds. The input has 3 classes"),
    "one of classes": (lambda: F.one_hot(wengert.tensor([5]), 3), "the class 5 and num_classes=3"),
    "public name": (lambda: F.mse_loss(X, wengert.ones(3, 4)), r": mse_loss\(\) got shapes \[2, 3\]"
                    r" and \[3, 4\]"),
    "another public name": (lambda: F.huber_loss(X, wengert.ones(4)), r": huber_loss\(\) got"),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTS)
def test_errors_name_what_they_are_about(name):
    call, text = FACTS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((IndexError, RuntimeError), match=text) as caught:
            call()
    assert type(caught.value) in (IndexError, RuntimeError)
    assert "_loss()" not in str(caught.value).replace("mse_loss()", "").replace("huber_loss()", "")
