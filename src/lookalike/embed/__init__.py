"""Pictures or text to vectors."""
