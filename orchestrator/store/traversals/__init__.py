"""Stack-level transitions: accept a request, start and complete a traversal.

* `accept.py`: a request and its revision, in a single transaction
* `traversals.py`: start, supersede or halt a traversal (a cancel halts it)
* `completion.py`: the end of a root stack or of a failed stack, and the wake-up of the parent's node
* `child_completion.py`: the successful end of a child stack, and the wake-up of the parent's node
* `queued_actions.py`: an action that starts when the stack comes to rest
* `children.py`, `child_reads.py`: the rows of child stacks
"""
