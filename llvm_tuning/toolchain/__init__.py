"""The LLVM tools of this machine: which are there, what they accept, how they build a program."""
