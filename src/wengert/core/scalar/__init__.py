"""Scalar expressions: what one element of an elementwise computation is made of.

The mathematics of functions such as exp and erf is written in them once, for every generator of
machine code to print.
"""
