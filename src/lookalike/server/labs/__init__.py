"""What the five labs compute, a file a lab."""
