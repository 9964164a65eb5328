"""`python -m callmark`: the same as the command `callmark`."""

from callmark.cli import main

if __name__ == "__main__":
    main()
