"""The addresses of the API, a file a subject; each is thin and calls the module of its name one folder up."""
