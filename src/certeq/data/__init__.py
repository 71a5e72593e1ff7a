"""Data: from whatever holds rows to counts. Batches, readers, recipes that make states of columns, counting."""
