"""What /proc and /sys say at one moment; each reader takes the root of a tree, recorded ones too."""
