"""What travels over HTTP, as pydantic models: the source of the OpenAPI document and of the web app's types."""
