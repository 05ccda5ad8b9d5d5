"""Candidate texts: generators behind one port, their cache, and the judge that turns them into pools."""
