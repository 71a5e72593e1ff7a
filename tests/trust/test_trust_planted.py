"""Whatever an archive planted where results are written is neither moved nor believed; nor are its settings."""

import os
import subprocess
import sys

import numpy as np
import pytest

from trust import planting


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
def test_random_things_planted_in_a_folder_change_nothing(tmp_path):
    found, failures = planting.campaign(tmp_path, np.random.default_rng(0), 60)
    assert failures == []
    assert found["written"] > 10
    assert found["refused"] > 10


@pytest.mark.slow
def test_settings_that_lie_in_the_folder_do_not_decide_how_pictures_are_drawn(tmp_path):
    """matplotlib reads `matplotlibrc` wherever it is started, and `text.usetex` would run LaTeX on anybody's words."""
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nfont.size: 40\nsvg.fonttype: path\n")
    code = "import matplotlib as m; from certeq.report.style import style\nwith style(): print(m.rcParams[{!r}])"
    command = [sys.executable, "-P", "-c", code.format("text.usetex")]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout == "False\n"
