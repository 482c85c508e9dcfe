"""Other models: what torch.export captured, op by op, as TopOps."""
