"""Pass pipelines as trees, and what makes one legal for the installed opt."""
