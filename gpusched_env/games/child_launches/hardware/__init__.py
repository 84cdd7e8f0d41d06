"""Laws and prices of warps that launch kernels, and the GPUs that have them."""
