"""The numbers of the loops in native.pyx, by which operators name them."""

ADD, SUB, MUL, DIV, RSUB = range(5)
NEG, ABS, EXP, LOG, SQRT, SIN, COS, TANH, SIGMOID, RELU, SQUARE, RECIPROCAL = range(12)
