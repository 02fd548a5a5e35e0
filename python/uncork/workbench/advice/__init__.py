"""Advice: gather evidence as stored runs, find what is wrong, write the experiment that proves a change."""
