"""The graphics room: planning for batches of small MDPs on an NVIDIA GPU. Optional; the CPU gives the same policies.

- ``solving``: the way from `solve`, for arrays of the host and of the device.
- ``planning``: from arrays with batch axes to the kernels, and back. ``arguments``: how they broadcast.
- ``launching``: policy iteration in CUDA (``small.cu``), up to 32 states. Twin: ``planners.policy_iteration``.
- ``drawing``: Dirichlet rows. Twin: ``questions.draws.draw_rows``.
- ``mixture``: a mixture of arrays on the device. Twin: ``model.kernel.Mixture``.
- ``device``: CuPy, or a message that says what is missing.

Copying a batch to the device takes longer than planning in it, so it pays to draw and mix there:

    rows = certeq.gpu.draw_rows(counts + 0.1, rng=1)             # (10**6, S, A, S), on the device
    plan = certeq.solve(rows, reward, 0.99, device="gpu")        # stays there; plan.get() brings it back

Larger MDPs were tried too, by batched sweeps and elimination. At 256 states that was 6 to 30 times as fast as two
processor cores: short of the 20 times that we ask for wherever chains mix slowly, and so it was left out.
"""

from certeq.planners.gpu.drawing import draw_rows
from certeq.planners.gpu.mixture import DeviceMixture
from certeq.planners.gpu.planning import evaluate

__all__ = ["DeviceMixture", "draw_rows", "evaluate"]
