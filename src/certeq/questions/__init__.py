"""Questions asked of a learned policy: what its discount assumed, how fragile its advice is, what to collect next."""
