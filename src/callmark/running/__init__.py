"""Running: from a Call to its result in the conversation, safely. The first floor that knows time, threads and I/O."""
