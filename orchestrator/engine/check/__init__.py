"""One visit to a node: decide, compare, judge the outcome."""
