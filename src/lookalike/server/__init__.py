"""The HTTP API and the local web app: the one part of lookalike that listens.

Nothing else in the package imports it but `lookalike serve`; everything it answers is computed by the functions that
the command line calls.
"""
