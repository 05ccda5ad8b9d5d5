"""From a table of records to splits and a synthetic data set, with the account of how they came about."""
