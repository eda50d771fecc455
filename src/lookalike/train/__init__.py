"""Labels to better vectors: sampling, mining, losses, a head or a whole backbone, and the run that is an encoder.

Nothing here is imported by the rest of the package, and `lookalike.train.triplets` needs numpy alone.
"""
