"""The fast device at warp granularity: the rules of the reference device on flat tables, in compiled code."""
