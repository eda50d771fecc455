"""lookalike: image retrieval and metric learning you can trust."""

__version__ = "0.1.0"
