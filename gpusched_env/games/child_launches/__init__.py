"""Child launches: applications whose threads launch kernels, and who says which launches are worth it."""
