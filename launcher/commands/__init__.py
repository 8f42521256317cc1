"""The command `nlaunch`."""
