"""Tables and previews on the terminal."""
