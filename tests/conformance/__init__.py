"""Neutral cases for the pure rules, fed through the public functions of `turngate_core`.

python -m tests.conformance [file or folder]
"""
