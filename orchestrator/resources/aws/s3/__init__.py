"""Resource types of S3, on Swift."""
