"""The virtual NUMA lab: a real kernel with as many nodes as asked for, and every user access counted."""
