"""Whatever an archive planted where results are written is neither moved nor believed; nor are its settings."""

import os

import numpy as np
import pytest

from trust import planting


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
def test_random_things_planted_in_a_folder_change_nothing(tmp_path):
    found, failures = planting.campaign(tmp_path, np.random.default_rng(0), 60)
    assert failures == []
    assert found["written"] > 10
    assert found["refused"] > 10
