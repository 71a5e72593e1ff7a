"""Base: what every room stands on. Arrays and their checks, errors, limits, words, writing, workers."""
