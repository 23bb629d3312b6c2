"""What ``wengert demo`` runs: three small problems solved with gradients, and a report."""
