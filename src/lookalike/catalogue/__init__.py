"""What is kept: the stored collection and the same contract in memory."""
