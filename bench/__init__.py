"""The measurements, each against a named peer or floor: `make bench`."""
