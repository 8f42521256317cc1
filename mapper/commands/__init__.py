"""The command `nmap`."""
