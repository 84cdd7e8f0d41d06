"""What a comparison leaves behind in its folder: the HTML report, traces and tables."""
