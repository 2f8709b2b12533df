"""Sandboxes on this machine: the E2B protocol, as its own SDK speaks it, served over bubblewrap.

A sandbox is a workspace on disk and, while it runs, one set of kernel namespaces in which all its commands live. Its first
process (`cell_init`) starts them; the server outside keeps time, output and limits. Killed with the server, a sandbox loses
its processes and keeps its files.
"""
