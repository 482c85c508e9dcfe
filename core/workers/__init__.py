"""Where it happens: in this process, in worker processes, later in a cluster; by resources cpu, gpu, emulated_*."""
