"""Resource types of nova, a module per type; `server/` has the modules of OS::Nova::Server."""
