"""What a tool is: a typed function becomes a name, words for the model, and a schema."""
