"""`nprof setup`: a QEMU that takes our plugin, where the system has none."""
