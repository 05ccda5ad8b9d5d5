"""What runs at a user's side: data, encoder, voting, availability."""
