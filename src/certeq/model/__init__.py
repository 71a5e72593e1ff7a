"""Model: from counts to a regularized MDP, formula by formula. Kernels, targets, weights, evidence, rewards."""
