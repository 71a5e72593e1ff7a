"""k-means by Lloyd's steps from k-means++ starts: small, seeded, and indifferent to empty clusters."""

from __future__ import annotations

import numpy as np

from certeq.base.arrays import Floats, Rng, generator
from certeq.data.recipes.axes import nearest_center

STARTS = 8
STEPS = 100
SAMPLE = 20_000  # centers are found on at most this many rows; every row then gets its nearest center


def k_means(points: Floats, k: int, *, rng: Rng = 0) -> Floats:
    """Centers of at most k clusters of the points ``(n, d)``, sorted; fewer where fewer points are different."""
    random = generator(rng)
    if len(points) > SAMPLE:
        points = points[np.sort(random.choice(len(points), SAMPLE, replace=False))]
    different = np.unique(points, axis=0)
    if len(different) <= k:
        return different
    found = [_lloyd(points, _start(points, k, random)) for _ in range(STARTS)]
    _, centers = min(found, key=lambda one: one[0])
    return np.unique(centers, axis=0)


def _start(points: Floats, k: int, random: np.random.Generator) -> Floats:
    """k-means++: each further center is drawn with a chance in proportion to its squared distance from the others."""
    centers = [points[random.integers(len(points))]]
    distance = ((points - centers[0]) ** 2).sum(axis=1)
    while len(centers) < k:
        centers.append(points[random.choice(len(points), p=distance / distance.sum())])
        distance = np.minimum(distance, ((points - centers[-1]) ** 2).sum(axis=1))
    return np.array(centers)


def _lloyd(points: Floats, centers: Floats) -> tuple[float, Floats]:
    """Move the centers to the means of their points until they rest: (sum of squared distances, centers)."""
    k = len(centers)
    for _ in range(STEPS):
        cluster = nearest_center(points, centers)
        size = np.bincount(cluster, minlength=k)
        sums = np.stack([np.bincount(cluster, column, minlength=k) for column in points.T], axis=1)
        moved = sums / np.maximum(size, 1)[:, None]
        empty = np.flatnonzero(size == 0)
        if len(empty):  # an empty cluster starts again at the points that are farthest from their centers
            far = ((points - centers[cluster]) ** 2).sum(axis=1)
            moved[empty] = points[np.argsort(far)[::-1][: len(empty)]]
        if np.array_equal(moved, centers):
            break
        centers = moved
    cluster = nearest_center(points, centers)
    return float(((points - centers[cluster]) ** 2).sum()), centers
