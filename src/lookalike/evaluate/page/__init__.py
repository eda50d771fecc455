"""A report as one web page that needs nothing else: no script, no font, no picture from anywhere."""
