"""AutoPass: tune LLVM options from compiler evidence and measured run times."""
