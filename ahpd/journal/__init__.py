"""The journal: where envelopes are kept so that a killed process loses none."""
