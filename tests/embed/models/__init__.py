"""Models of other libraries, tiny and random, through the real loading code."""
