"""Reading: from what a model writes to events. The only room besides `writing` that knows regular expressions."""
