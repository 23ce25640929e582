"""Keystone: sessions, delegation, the domain of stack users, EC2 tokens."""
