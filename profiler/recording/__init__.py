"""One recording or several: the program under a backend, and the trace of what it saw."""
