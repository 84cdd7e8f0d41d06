"""Games: what experiments ask of a kind of problems, who answers, and where the answer for a name is found."""
