"""Graphs as machine code for the processor at hand, by way of loops and LLVM."""
