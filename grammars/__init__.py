"""The definition of every dialect: a Lark grammar each, and one for each body language that several share."""
