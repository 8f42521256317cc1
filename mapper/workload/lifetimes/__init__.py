"""Threads that follow one another: who made whom, who lives when, and who may have another one's seat."""
