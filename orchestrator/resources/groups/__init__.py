"""Group types: the child consists of members with equal definitions (docs/internals/resource-types.md §A6).

Membership, removal order and batches are computed by pure modules: `member_removal`, `rolling_update`,
`capacity`. `template/group_template.py` writes and reads the template of the child.
"""
