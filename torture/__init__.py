"""Reliability, tried hard: races, kills, faults, floods and garbage, each with a seed to repeat it."""
