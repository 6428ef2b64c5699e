"""The agent runner: executes runs for a broker and keeps no state between them."""
