"""Files that are either whole or not there, and folders that nothing leaves behind."""
