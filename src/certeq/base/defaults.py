"""Defaults that are statistical decisions. Each was chosen by a study, and a page says why (docs/study.md)."""

REGULARIZER = "learned_target"
DISCOUNT = 0.99
