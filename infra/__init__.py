"""The fleet of a team on AWS Batch, built by Pulumi. May import submit.fleet, no more of submit."""
