"""Methods that value coalitions of clients by a utility."""
