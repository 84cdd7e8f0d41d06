"""Policies that choose a node for a pod: a score for each node that it fits on, the largest is taken, the first of
equal ones. Each by Weng et al. (USENIX ATC 2023), as its public simulator plays it: scores are whole numbers."""
