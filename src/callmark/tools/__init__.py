"""Tools: what may be called, and whether a call's arguments are what a tool takes. Pure: no clock, threads or I/O."""
