"""From the words of a command line to a command that ends as it should: options, help, errors, exit codes."""
