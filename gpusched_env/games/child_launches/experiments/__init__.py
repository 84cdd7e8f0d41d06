"""Child launches, the game of ``DynamicParallelism``: its schedulers, episodes and fuzzer."""
