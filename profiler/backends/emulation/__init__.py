"""Recording by emulation: the program under QEMU user mode with our plugin."""
