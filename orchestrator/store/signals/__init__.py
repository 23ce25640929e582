"""The queue of signals, their targets, and resizing of groups."""
