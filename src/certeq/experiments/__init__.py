"""The paper's experiments: a procedure, one module for each figure, and verdicts on what the paper claims."""
