"""Where users and their records come from: files, data sets that ship with packages, generated people."""
