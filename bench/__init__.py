"""The measurements that README quotes, each against a named peer or floor: `make bench`."""
