"""The loop that refines a program in the lab from the host: what it sees of the guest, and does there."""
