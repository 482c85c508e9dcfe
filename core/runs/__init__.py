"""What happened: append-only, crash-safe, resumable runs, their blobs, and exporters."""
