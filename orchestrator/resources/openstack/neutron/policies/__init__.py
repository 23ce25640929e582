"""Security groups, QoS, metering, access of other projects, and quotas."""
