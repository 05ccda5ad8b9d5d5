"""What a person reads after the audit of a training plan."""
