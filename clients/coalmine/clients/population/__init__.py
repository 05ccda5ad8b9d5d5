"""Who can be reached, who drops out, and who is too late: clients that come and go."""
