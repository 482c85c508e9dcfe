"""HTML reports of runs: pictures and tables that can be looked at without a server."""
