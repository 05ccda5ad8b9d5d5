"""What every party must agree on: vocabulary and plain definitions."""
