"""Reading: from what a model writes to events. Pure: no clock, threads or I/O."""
