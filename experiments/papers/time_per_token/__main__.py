"""Time per token of the rows of a file like ``data/measurements/engine/silicon.csv``, printed."""

import sys
from pathlib import Path

from gpusched_env.experiments.papers.time_per_token import Paper
from gpusched_env.experiments.papers.time_per_token.silicon import cells_of

if __name__ == "__main__":
    found = Paper({cell: cell.run("") for cell in cells_of(Path(sys.argv[1]))})
    print(*found.printed(), found.summary_line(), sep="\n\n")
