"""Trees of containers: flatten them, map over their leaves, build them again."""
