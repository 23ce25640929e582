"""A visit to a node: decide its step, compare, judge the outcome."""
