"""Fair queues in the broker: projects share the workers by time, whatever the number of their messages.

Celery takes messages from a list per queue, in the order of arrival. The lists of a lane (the queues of the
same processes) are kept short here: they hold about two messages per worker process. Further messages wait in
a list per root stack, and a script moves them whenever a task ends (adr/0001-fair-queues.md). If a worker
reads several short tasks at once (adr/0002), the lists hold as many times more.

* The next message is of the project that has used the least worker time, as in start-time fair queueing.
  Within a project, root stacks take turns. The messages of a project with little work go ahead of the list.
* A project whose tasks are long has at most half of the worker processes while other projects have work: a
  task cannot be interrupted, so the next task of another project would otherwise wait for its end.

The broker may lose everything at any time: the sweep re-enqueues nodes without a message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

# Queues served by the same processes, hence with common turns.
LANES: Final[Mapping[str, str]] = {
    "check": "local",
    "bulk": "local",
    "provider": "provider",
    "observe": "provider",
}
GATHERED: Final = "check"  # queue whose messages a worker reads several at once (adr/0002)
KEY_PREFIX: Final = "fair:"
MIN_LISTED: Final = 4  # messages in Celery's lists of a lane
MAX_LISTED: Final = 4_096
UNKNOWN_CAPACITY: Final = 8  # assumed processes until workers have reported
LONG_TASK_SECONDS: Final = 0.1  # duration of a task after which the share of its project is limited
LONG_TASK_HALF_LIFE: Final = 10.0  # seconds in which half of such a duration is forgotten
CREDIT_SECONDS: Final = 0.2  # worker time of a project with little work, whose messages go ahead of the list
FIRST_SECONDS: Final = 0.02  # assumed duration of the first tasks of a project
RECENT_SECONDS: Final = 600  # a project without messages for this long has no work
RUNNING_SECONDS: Final = 70  # longer than Celery's time limit: after that a task was lost
REPORT_SECONDS: Final = 10  # validity of the report of a worker
CANDIDATES: Final = 100  # projects considered for the next message


@dataclass(frozen=True, slots=True)
class FinishedTasks:
    """Tasks of a project that ended, with their mean duration in seconds."""

    task_ids: Sequence[str]
    queue: str
    project: str
    seconds: float
    together: int = 1  # tasks that the worker reads at once


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """The queues and the number of processes or threads of a running worker."""

    name: str
    queues: Sequence[str]
    processes: int


@dataclass(frozen=True, slots=True)
class Group:
    """Rendered messages of a root stack for a queue, by task id."""

    queue: str
    project: str
    root: str
    messages: Mapping[str, bytes]


# ARGV: the key prefix, then commands with their arguments. Times are in seconds. Keys after the prefix:
#   clock:L             virtual time
#   turns:L             sorted set: projects with waiting messages, by the virtual time of their next turn
#   finished:L          hash: the virtual time at which the last turn of a project ended
#   stacks:L:P          sorted set: root stacks of a project with waiting messages, by turn
#   messages:L:R        list: waiting messages of a root stack, each after its time, task id and queue
#   waiting:L           hash: number of waiting messages by queue
#   running:L:P         sorted set: tasks of a project in a lane, by the time at which they count as lost
#   seconds:L           hash: average duration of the tasks of a project
#   together:L          hash: tasks of a project that a worker reads at once
#   long:L              hash: `duration end` of the longest task of a project. The duration decreases with
#                       time, not with each shorter task: a project may mix long tasks with many short ones
#   recent:L            sorted set: projects, by the time of their last message
#   workers:L           sorted set: `processes name` of the workers, by the end of their report
#   capacity:L          number of processes
SCRIPT: Final = f"""
local base, lanes = ARGV[1], {{ {", ".join(f"{queue}='{lane}'" for queue, lane in LANES.items())} }}
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local position, changed = 2, {{}}

local function key(...) return base .. '{KEY_PREFIX}' .. table.concat({{...}}, ':') end

local function argument()
    position = position + 1
    return ARGV[position - 1]
end

local function number(value, default) return tonumber(value or default) end

local function clock_of(lane) return number(redis.call('GET', key('clock', lane)), 0) end

local function enqueue(lane, queue, project, root, count)
    local messages = key('messages', lane, root)
    for _ = 1, count do redis.call('RPUSH', messages, now, argument(), queue, argument()) end
    redis.call('HINCRBY', key('waiting', lane), queue, count)
    local stacks = key('stacks', lane, project)
    if not redis.call('ZSCORE', stacks, root) then
        local first = redis.call('ZRANGE', stacks, 0, 0, 'WITHSCORES')
        redis.call('ZADD', stacks, first[2] or 0, root)
    end
    local turns = key('turns', lane)
    if not redis.call('ZSCORE', turns, project) then
        local finished = number(redis.call('HGET', key('finished', lane), project), 0)
        redis.call('ZADD', turns, math.max(finished, clock_of(lane) - {CREDIT_SECONDS}), project)
    end
end

local function longest_of(lane, project)
    local longest = redis.call('HGET', key('long', lane), project) or '0 0'
    local duration, ended = string.match(longest, '(%S+) (%S+)')
    return duration * 0.5 ^ ((now - ended) / {LONG_TASK_HALF_LIFE})
end

local function has_room(lane, project, capacity)
    if longest_of(lane, project) < {LONG_TASK_SECONDS} then return true end
    local recent = key('recent', lane)
    if redis.call('ZCOUNT', recent, now - {RECENT_SECONDS}, '+inf') < 2 then return true end
    local running = key('running', lane, project)
    redis.call('ZREMRANGEBYSCORE', running, '-inf', now)
    return redis.call('ZCARD', running) < math.max(1, math.floor(capacity / 2))
end

local function next_project(lane, capacity)
    local turns = redis.call('ZRANGE', key('turns', lane), 0, {CANDIDATES - 1}, 'WITHSCORES')
    for index = 1, #turns, 2 do
        if has_room(lane, turns[index], capacity) then return turns[index], tonumber(turns[index + 1]) end
    end
end

local function run(lane, project, entries, ahead)
    local running, counts = key('running', lane, project), {{}}
    local first, last, step = 1, #entries, 4
    if ahead then first, last, step = #entries - 3, 1, -4 end
    for index = first, last, step do
        local id, queue = entries[index + 1], entries[index + 2]
        redis.call(ahead and 'RPUSH' or 'LPUSH', base .. queue, entries[index + 3])
        redis.call('ZADD', running, now + {RUNNING_SECONDS}, id)
        counts[queue] = (counts[queue] or 0) + 1
    end
    for queue, count in pairs(counts) do redis.call('HINCRBY', key('waiting', lane), queue, -count) end
end

local function goes_ahead(lane, project, turn, capacity)
    local running = redis.call('ZCOUNT', key('running', lane, project), now, '+inf')
    return turn < clock_of(lane) and running <= capacity
end

local function seconds_of(lane, project)
    return number(redis.call('HGET', key('seconds', lane), project), {FIRST_SECONDS})
end

-- The queue of the next message of a project.
local function next_queue(lane, project)
    local first = redis.call('ZRANGE', key('stacks', lane, project), 0, 0)
    return first[1] and redis.call('LINDEX', key('messages', lane, first[1]), 2)
end

-- Take up to `most` messages of a queue, one if another project or another stack of the project waits.
local function take(lane, project, turn, ahead, most)
    local stacks = key('stacks', lane, project)
    local first = redis.call('ZRANGE', stacks, 0, 1, 'WITHSCORES')
    if first[3] or redis.call('ZCARD', key('turns', lane)) > 1 then most = 1 end
    local taken = 0
    if first[1] then
        local messages = key('messages', lane, first[1])
        local entries = redis.call('LRANGE', messages, 0, 4 * most - 1)
        for index = 5, #entries, 4 do
            if entries[index + 2] ~= entries[3] then
                for other = #entries, index, -1 do entries[other] = nil end
                break
            end
        end
        taken = #entries / 4
        redis.call('LTRIM', messages, #entries, -1)
        if redis.call('EXISTS', messages) == 1 then
            redis.call('ZADD', stacks, first[2] + taken, first[1])
        else
            redis.call('ZREM', stacks, first[1])
        end
        run(lane, project, entries, ahead)
    end
    local ended = turn + math.max(1, taken) * math.max(0.001, seconds_of(lane, project))
    redis.call('SET', key('clock', lane), math.max(clock_of(lane), turn))
    redis.call('HSET', key('finished', lane), project, ended)
    if redis.call('EXISTS', stacks) == 1 then
        redis.call('ZADD', key('turns', lane), ended, project)
    else
        redis.call('ZREM', key('turns', lane), project)
    end
    return taken
end

local function listed_in(lane)
    local listed = 0
    for queue, served in pairs(lanes) do
        if served == lane then listed = listed + redis.call('LLEN', base .. queue) end
    end
    return listed
end

local function fill(lane)
    local capacity = number(redis.call('GET', key('capacity', lane)), {UNKNOWN_CAPACITY})
    local size = math.min({MAX_LISTED}, math.max({MIN_LISTED}, 2 * capacity))
    local listed = listed_in(lane)
    while true do
        local project, turn = next_project(lane, capacity)
        if not project then return end
        local ahead = goes_ahead(lane, project, turn, capacity)
        local together = 1
        if next_queue(lane, project) == '{GATHERED}' then
            together = number(redis.call('HGET', key('together', lane), project), 1)
        end
        local room = size * together - listed
        if room < 1 and not ahead then return end
        local is_short = together > 1 and longest_of(lane, project) < {LONG_TASK_SECONDS}
        listed = listed + take(lane, project, turn, ahead, is_short and math.max(1, room) or 1)
    end
end

local function publish()
    local queue, project, root = argument(), argument(), argument()
    local lane = lanes[queue]
    redis.call('ZADD', key('recent', lane), now, project)
    enqueue(lane, queue, project, root, tonumber(argument()))
    changed[lane] = true
end

local function finish()
    local queue, project, seconds, together = argument(), argument(), tonumber(argument()), argument()
    local lane, count = lanes[queue], tonumber(argument())
    if queue == '{GATHERED}' then redis.call('HSET', key('together', lane), project, together) end
    redis.call('ZADD', key('recent', lane), now, project)
    for _ = 1, count do redis.call('ZREM', key('running', lane, project), argument()) end
    local average = number(redis.call('HGET', key('seconds', lane), project), seconds)
    local weight = 0.8 ^ count
    redis.call('HSET', key('seconds', lane), project, weight * average + (1 - weight) * seconds)
    if seconds > longest_of(lane, project) then
        redis.call('HSET', key('long', lane), project, seconds .. ' ' .. now)
    end
    changed[lane] = true
end

local function clean(lane)
    local recent = key('recent', lane)
    local idle = redis.call('ZRANGEBYSCORE', recent, '-inf', now - {RECENT_SECONDS}, 'LIMIT', 0, 1000)
    for _, project in ipairs(idle) do
        redis.call('ZREM', recent, project)
        redis.call('HDEL', key('seconds', lane), project)
        redis.call('HDEL', key('together', lane), project)
        redis.call('HDEL', key('long', lane), project)
        redis.call('HDEL', key('finished', lane), project)
    end
end

local function report()
    local lane, name, processes = argument(), argument(), argument()
    local workers = key('workers', lane)
    redis.call('ZADD', workers, now + {REPORT_SECONDS}, processes .. ' ' .. name)
    local checked = key('checked', lane)
    if now - number(redis.call('GET', checked), 0) > 1 then
        redis.call('SET', checked, now)
        redis.call('ZREMRANGEBYSCORE', workers, '-inf', now)
        local capacity = 0
        for _, worker in ipairs(redis.call('ZRANGE', workers, 0, -1)) do
            capacity = capacity + tonumber(string.match(worker, '^%d+'))
        end
        redis.call('SET', key('capacity', lane), capacity)
        clean(lane)
    end
    changed[lane] = true
end

local commands = {{ publish = publish, finish = finish, report = report }}
while position <= #ARGV do commands[argument()]() end
for lane in pairs(changed) do fill(lane) end
"""


def arguments(
    groups: Sequence[Group], finished: Sequence[FinishedTasks] = (), report: WorkerReport | None = None
) -> list[str | bytes]:
    """Return the commands of a run of the script."""
    result: list[str | bytes] = []
    for tasks in finished:
        if tasks.queue in LANES:
            result += ["finish", tasks.queue, tasks.project, f"{tasks.seconds:.6f}", str(tasks.together)]
            result += [str(len(tasks.task_ids)), *tasks.task_ids]
    for group in groups:
        result += ["publish", group.queue, group.project, group.root, str(len(group.messages))]
        for task_id, message in group.messages.items():
            result += [task_id, message]
    if report is not None:
        for lane in sorted({LANES[queue] for queue in report.queues if queue in LANES}):
            result += ["report", lane, report.name, str(report.processes)]
    return result
