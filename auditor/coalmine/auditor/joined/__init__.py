"""Findings of several runs in one table: what each shows, never as if different epsilons were one."""
