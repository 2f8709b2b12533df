"""Thin classes: unpack, heartbeat, call one service, map failure."""
