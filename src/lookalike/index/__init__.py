"""Vectors to neighbours: arrays and ids only."""
