"""The definition of every dialect: one Lark grammar each, and one for each body language that several dialects share."""
