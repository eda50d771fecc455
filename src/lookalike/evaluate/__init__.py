"""An order to an honest number."""
