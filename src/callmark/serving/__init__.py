"""What callmark does, for other programs: functions as JSON over stdio, HTTP and WebSocket, and the proxy."""
