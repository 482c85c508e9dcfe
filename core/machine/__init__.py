"""What this machine is: its processors, tools and environment."""
