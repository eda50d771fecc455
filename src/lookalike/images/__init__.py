"""Files to upright 8-bit RGB, or a reason."""
