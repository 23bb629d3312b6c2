"""What graphs mean: they run on the eager operators."""
