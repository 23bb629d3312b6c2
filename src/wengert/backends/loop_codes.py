"""The numbers of the loops in loops.h, by which operators and gradient rules name them."""

ADD, SUB, MUL, DIV, RSUB = range(5)
# Copying is asked for as a binary loop in place is; no other operator has its number.
COPY = 50
NEG, ABS, EXP, LOG, SQRT, SIN, COS, TANH, SIGMOID, RELU, SQUARE, RECIPROCAL = range(12)
# The sum of all elements is asked for as a unary loop is.
TOTAL = 12

# What a gradient rule can come down to when nothing is recorded, beside a loop of two operands:
# the loop of the differential of the unary operator FUSED + n,
FUSED = 100
# multiplication by a number that mostly is one, nothing at all, one number for all elements,
SCALE = 200
PASS_ON = 201
SPREAD = 202
# the loop in C that belongs to the rule and takes all that it reads,
VECTOR = 300
# or a product of matrices: plus 1 if the gradient is the second factor, plus 2 if the first factor
# is transposed, plus 4 if the second is.
PRODUCT = 320
