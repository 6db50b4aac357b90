"""A local AWS for runfleet: one loopback port, moto for most services, its own strict Batch."""
