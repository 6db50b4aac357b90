"""AWS Batch as documented: its API from botocore's model, its limits, its states, real jobs."""
