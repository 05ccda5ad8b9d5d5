"""Models trained at the users' side: tables, partitions, plans; the fast trainer lives in ``fast``."""
