"""Readers of the field's layouts, and the generated demo catalogue."""
