"""Telemetry in OpenTelemetry's terms: the values, their encoding, and a collector to send to."""
