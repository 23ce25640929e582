"""Resource types of CloudWatch, on Aodh."""
