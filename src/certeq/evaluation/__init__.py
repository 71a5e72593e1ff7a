"""Evaluation: how good a policy is."""
