"""The lab: what counting costs, and online policies counted in it."""
