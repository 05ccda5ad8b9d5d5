"""The auditor audits itself: phantom canaries, and mechanisms that are broken on purpose.

Nothing outside this package and its verb imports it: a broken part cannot be switched on from a study.
"""
