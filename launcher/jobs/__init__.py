"""Ranks of a job on several hosts: which part of its plan is theirs."""
