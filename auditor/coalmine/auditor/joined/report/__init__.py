"""The page, the figure and the record of joined findings."""
