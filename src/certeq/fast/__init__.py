"""The fast room: compiled kernels, each with a plain twin elsewhere that it must agree with.

- ``lanes``: eight numbers at once, one per MDP. Twin: eight Python floats, in tests/fast/test_lanes.py.
- ``small``: policy iteration for many small MDPs, eight per register. Twin: ``planners.policy_iteration``.
- ``medium``: inexact policy iteration for larger dense MDPs. Twin: ``planners.policy_iteration``.
- ``learning``: Q-learning with simulated updates (Algorithm 3). Twin: ``q_learning`` in tests/naive.py.
- ``random``: a small random number generator. Twin: Python integers, in tests/fast/test_random.py.
- ``operands``: broadcasting for the planners without copies. Twin: ``numpy.broadcast_arrays``.
- ``sparse``: passes over one large sparse MDP. Twin: NumPy and SciPy, in tests/fast/test_sparse.py.
- ``tallying``: counting rows of codes. Twin: a dictionary, in tests/fast/test_tallying.py.
- ``threads``: one kernel over ranges, on all cores. Twin: a loop.

Kernels work on a range ``[start, stop)`` and let go of the interpreter lock, so ordinary threads share the work and the
result never depends on how many there are.
"""
