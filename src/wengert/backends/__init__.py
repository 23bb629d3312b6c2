"""Array namespaces that kernels are written against, one per kind of device."""
