"""Stores on engines that other people run: PostgreSQL with pgvector, and Milvus, under the contract of a catalogue."""
