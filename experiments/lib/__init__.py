"""What all experiments share: one runner of episodes, one statistics module, one writer of tables and pages."""
