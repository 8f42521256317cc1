"""Which threads have roles of their own, and which ones may each do what another one did."""
