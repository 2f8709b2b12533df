"""What a history says, in the words of the tests."""

from __future__ import annotations

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import ActivityTaskScheduledEventAttributes
from temporalio.client import WorkflowHistory


def scheduled(history: WorkflowHistory) -> list[ActivityTaskScheduledEventAttributes]:
    return [
        event.activity_task_scheduled_event_attributes
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]


def activities_of(history: WorkflowHistory) -> list[str]:
    return [attributes.activity_type.name for attributes in scheduled(history)]


def timers_s(history: WorkflowHistory) -> list[float]:
    """How long each timer was to run, in the order they were started."""
    return [
        event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta().total_seconds()
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_TIMER_STARTED
    ]


def count(history: WorkflowHistory, event_type: EventType.ValueType) -> int:
    return sum(event.event_type == event_type for event in history.events)


def virtual_seconds(history: WorkflowHistory) -> float:
    """From the first event to the last on the workflow's own clock."""
    first, last = history.events[0].event_time, history.events[-1].event_time
    return (last.ToDatetime() - first.ToDatetime()).total_seconds()
