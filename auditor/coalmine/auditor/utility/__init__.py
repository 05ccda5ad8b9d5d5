"""How good a round's synthetic output is, measured against public users. No statement about privacy rests on it."""
