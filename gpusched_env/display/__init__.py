"""How results look: tables for terminal, notebook, Markdown and HTML; data frames; plots."""
