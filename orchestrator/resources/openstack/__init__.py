"""Resource types of OpenStack's services, a folder per service."""
