"""Stress tests for reliability: races, kills, faults, floods and garbage, repeatable by seed."""
