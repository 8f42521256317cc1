"""The virtual machine: its shape, kernel, QEMU, and the agent that runs jobs in it."""
