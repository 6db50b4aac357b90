"""Pulumi's AWS provider for the sandbox: exactly the resources that a fleet is made of.

Answers as the real provider does: its names, its outputs, its decisions of what is updated
and what is replaced. What it does not have, it names.
"""
