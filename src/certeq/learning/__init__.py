"""Learning: the one way from data to advice. Rules, cases, policies, and the estimator."""
