"""What a tool is: a typed function becomes a name, a description and a schema."""
