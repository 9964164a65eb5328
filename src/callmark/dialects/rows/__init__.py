"""The rows of the dialects that come with callmark, by how their calls are written; `table` puts them in order.

    envelopes     JSON objects that hold the tool's name and the arguments
    objects       JSON objects of arguments, behind the tool's name
    expressions   `name(...)` as in a program, and `name{...}` with bare keys
    attributes    a tag for each argument; names and keys stand in the tags, as attributes or as their names
    signed        the same, in tags whose names begin with a sign of the model's own
    tags          a tag for each argument; names and keys stand between tags, as values do
    channels      messages whose header names the tool

A row with forms of several kinds stands where most of them belong. What one row alone needs is directly above it, what
several of a module need is at the head of that module, and what several modules need is in `idioms`: none of them
imports another.
"""
