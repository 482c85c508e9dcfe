"""What the compiler says of a program: remarks and IR features, size-capped."""
