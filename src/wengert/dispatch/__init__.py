"""One call of one operator: arguments, recording, overrides, the kernel."""
