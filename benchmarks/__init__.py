"""Benchmarks of callmark: workloads with their ground truth, floors, the recovery corpus, and one command.

Run `python -m benchmarks` from the root of the repository; README.md beside this file says what each figure means.
"""
