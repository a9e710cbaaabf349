"""Questions that wait for a person, answered from another process of the same user."""
