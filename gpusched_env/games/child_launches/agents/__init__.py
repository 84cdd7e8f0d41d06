"""The learned scheduler of child launches: a rule of few weights, its file, and how it plays."""
