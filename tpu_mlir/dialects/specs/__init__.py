"""The ops, one declaration each: operands, attributes, shape rule and verifier, host inference, FLOPs, doc."""
