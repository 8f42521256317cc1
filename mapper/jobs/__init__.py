"""Jobs of many ranks on many hosts: which rank runs on which host, and a plan for each host."""
