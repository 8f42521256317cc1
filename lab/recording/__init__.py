"""`nprof record --backend lab`: what a program does in the guest, as a recording."""
