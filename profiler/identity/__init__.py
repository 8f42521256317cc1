"""Identities that hold from run to run: threads by creation path, processes by fork path or rank, regions."""
