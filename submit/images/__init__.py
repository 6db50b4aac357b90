"""Images of containers: their names, what their registry says of them, and how they are made."""
