"""Types whose child is a group of like members (docs/internals/resource-types.md §A6).

Deciding who is a member, who goes and in which order is pure and apart from the types: `members`, `removal`,
`rolling`, `scaling`. What a child is made from is written by `texts` and read by
`template/group_template.py`.
"""
