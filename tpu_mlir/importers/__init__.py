"""Importers: models from outside, brought into TopOp."""
