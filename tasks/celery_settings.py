"""Celery's settings. The reason for each is in docs/internals/dependencies.md §3.

PostgreSQL is the queue of record; the broker may lose every message. Hence no results, no canvas, no ETA and
no redelivery by the broker: `ack_emulation = False` saves two round trips per message, and the sweep finds
lost work sooner than a visibility timeout.
"""

from __future__ import annotations

from typing import Any

from kombu import Exchange, Queue

QUEUES = ("check", "provider", "observe", "bulk")


def celery_settings(broker_url: str) -> dict[str, Any]:
    """Return the configuration for a broker."""
    return {
        "broker_url": broker_url,
        "result_backend": None,
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_acks_late": True,
        "task_reject_on_worker_lost": False,
        "task_retry_on_worker_lost": True,
        "task_soft_time_limit": 50,
        "task_time_limit": 60,
        "task_create_missing_queues": False,
        "task_queues": [Queue(name, Exchange(name), routing_key=name) for name in QUEUES],
        "task_default_queue": "check",
        "worker_prefetch_multiplier": 1,
        "worker_disable_prefetch": False,
        "worker_eta_task_limit": 1000,
        "worker_max_tasks_per_child": 100_000,
        "worker_max_memory_per_child": 400_000,
        "worker_soft_shutdown_timeout": 20,
        "worker_enable_soft_shutdown_on_idle": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_hijack_root_logger": False,
        "worker_send_task_events": False,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_channel_error_retry": True,  # an error of the broker ends the connection, not the worker
        "broker_pool_acquire_timeout": 5,
        "broker_transport_options": {
            "ack_emulation": False,
            "priority_steps": [0],  # a single list per queue instead of four: priorities are not used
            "visibility_timeout": 600,
            "unacked_restore_interval": 5,
            "unacked_restore_throttle": 1,
            "health_check_interval": 25,
            "socket_timeout": 30,
            "socket_connect_timeout": 5,
            "socket_keepalive": True,
        },
    }
