"""What a person or a program reads after an audit: findings, figures, table, report."""
