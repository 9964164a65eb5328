"""What callmark does, for programs that are not Python: functions as JSON over stdio, HTTP and WebSocket."""
