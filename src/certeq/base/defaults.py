"""Defaults that are statistical decisions. Each was chosen by a study, and a page says why (docs/study.md)."""

REGULARIZER = "learned_target"
DISCOUNT = 0.99
MIN_SHARE = 0.2  # docs/decisions/0015-avoided-actions.md
MIN_CHANCE = 0.8  # docs/decisions/0017-sets-of-actions.md
