"""What rules, plans and agents reckon with: who can be in time, the fluid model, sampled futures, intervals."""
